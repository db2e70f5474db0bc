#include "cupel/checkpoint/config_diff.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/checkpoint/catalogue.h"

namespace cupel {
namespace {

using nlohmann::json;

struct Meaning {
  std::string_view field;
  Touches touches;
  std::string_view text;
  std::string_view default_value = "";  // JSON; what an absent field stands for
};

constexpr auto kT = Touches::kTarget;
constexpr auto kD = Touches::kDrafter;
constexpr auto kN = Touches::kNothing;

constexpr auto kMeanings = std::to_array<Meaning>({
    {"_name_or_path", kN, "a label"},
    {"architectures", kT, "the class that a loader picks"},
    {"attention_bias", kT, "bias of attention projections", "false"},
    {"attention_dropout", kN, "training only"},
    {"bos_token_id", kT, "first token of every prompt"},
    {"compress_rope_theta", kT, "RoPE base of layers with ratio 4 and 128"},
    {"dspark_block_size", kD, "tokens a DSpark draft holds; its presence selects DSpark"},
    {"dspark_markov_rank", kD, "width of the DSpark Markov head"},
    {"dspark_noise_token_id", kD, "filler token of a DSpark draft"},
    {"dspark_target_layer_ids", kD, "target layers whose states DSpark reads"},
    {"dtype", kN, "dtype of plain tensors, which the files state themselves"},
    {"eos_token_id", kT, "token that ends an answer"},
    {"hc_eps", kT, "constant of the hyper-connections"},
    {"hc_mult", kT, "number of residual streams"},
    {"hc_sinkhorn_iters", kT, "passes that normalise the stream mixing"},
    {"head_dim", kT, "width of a head and of a cache row"},
    {"hidden_act", kT, "activation of the experts"},
    {"hidden_size", kT, "width of the network"},
    {"index_head_dim", kT, "width of an index key"},
    {"index_n_heads", kT, "heads of the indexer"},
    {"index_topk", kT, "entries that a ratio-4 layer attends to beyond its window"},
    {"initializer_range", kN, "training only"},
    {"max_position_embeddings", kT, "longest context"},
    {"model_type", kT, "which network this is"},
    {"moe_intermediate_size", kT, "width of an expert"},
    {"n_routed_experts", kT, "routed experts a layer"},
    {"n_shared_experts", kT, "shared experts a layer"},
    {"norm_topk_prob", kT, "whether router weights are normalised", "true"},
    {"num_attention_heads", kT, "query heads"},
    {"num_experts_per_tok", kT, "experts chosen for a token"},
    {"num_hash_layers", kT, "first layers, which route by token id"},
    {"num_hidden_layers", kT, "main layers"},
    {"num_key_value_heads", kT, "key/value heads"},
    {"num_nextn_predict_layers", kD, "MTP layers; does not count DSpark stages"},
    {"o_groups", kT, "groups of the output projection"},
    {"o_lora_rank", kT, "rank of the output projection"},
    {"q_lora_rank", kT, "rank of the query projection"},
    {"qk_rope_head_dim", kT, "rotary part of a head"},
    {"quantization_config.activation_scheme", kT, "how activations are quantised"},
    {"quantization_config.fmt", kT, "format of FP8 weights"},
    {"quantization_config.quant_method", kT, "quantisation of the weights"},
    {"quantization_config.scale_fmt", kT, "whether scales are powers of two"},
    {"quantization_config.weight_block_size", kT, "block that shares an FP8 scale"},
    {"rms_norm_eps", kT, "constant of the norms"},
    {"rope_scaling.beta_fast", kT, "YaRN of compressed layers"},
    {"rope_scaling.beta_slow", kT, "YaRN of compressed layers"},
    {"rope_scaling.factor", kT, "YaRN of compressed layers"},
    {"rope_scaling.original_max_position_embeddings", kT, "YaRN of compressed layers"},
    {"rope_scaling.type", kT, "scaling of the compressed layers' RoPE"},
    {"rope_theta", kT, "RoPE base of ratio-0 layers"},
    {"routed_scaling_factor", kT, "factor on the routed experts' sum"},
    {"scoring_func", kT, "score of the router"},
    {"sliding_window", kT, "positions that every layer sees"},
    {"swiglu_limit", kT, "clamp inside the experts"},
    {"tie_word_embeddings", kT, "whether the output head is the embedding", "false"},
    {"topk_method", kT, "how the router chooses"},
    {"torch_dtype", kN, "dtype of plain tensors, which the files state themselves"},
    {"transformers_version", kN, "the program that wrote the file"},
    {"use_cache", kN, "a default of another program"},
    {"vocab_size", kT, "rows of embedding and output head"},
});

// Nested objects as "outer.inner".
void flatten(const json& object, const std::string& prefix, std::map<std::string, json>& out) {
  for (const auto& [name, value] : object.items()) {
    std::string key = prefix + name;
    if (key == "rope_scaling.rope_type") key = "rope_scaling.type";  // two names of one field
    if (value.is_object()) {
      flatten(value, key + ".", out);
    } else if (!value.is_null()) {
      out[key] = value;
    }
  }
}

std::map<std::string, json> fields_of(std::string_view text, std::string_view where) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object()) throw InputError(where, "a JSON object", "something else");
  std::map<std::string, json> out;
  flatten(root, "", out);
  return out;
}

std::string value_text(const json* value) {
  if (value == nullptr) return "absent";
  std::string text = value->dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t kLongest = 160;
  if (text.size() > kLongest) {
    text = value->is_array() ? fmt::format("{} entries", value->size())
                             : text.substr(0, kLongest) + "...";
  }
  return text;
}

ConfigChange describe(const std::string& field, const json* before, const json* after) {
  ConfigChange change{field, value_text(before), value_text(after), Touches::kUnknown,
                      "not a field that this program knows"};
  const auto found = std::ranges::find(kMeanings, field, &Meaning::field);
  if (found == kMeanings.end()) {
    if (field.starts_with("dspark_")) {
      change.touches = Touches::kDrafter;
      change.meaning = "a DSpark setting that this program does not know";
    }
    return change;
  }
  change.touches = found->touches;
  change.meaning = found->text;
  const json* present = before == nullptr ? after : before;
  if ((before == nullptr || after == nullptr) && !found->default_value.empty() &&
      *present == json::parse(found->default_value)) {
    change.touches = Touches::kNothing;
    change.meaning += "; absent means the same";
  }
  return change;
}

std::size_t main_layers(const std::map<std::string, json>& fields, std::size_t entries) {
  const auto found = fields.find("num_hidden_layers");
  if (found == fields.end() || !found->second.is_number_unsigned()) return entries;
  return std::min(entries, found->second.get<std::size_t>());
}

// Entries [from, to) as a list of their own.
json slice(const json& list, std::size_t from, std::size_t to) {
  json out = json::array();
  for (std::size_t i = from; i < to; ++i) out.push_back(list[i]);
  return out;
}

void diff_ratios(const std::map<std::string, json>& before,
                 const std::map<std::string, json>& after, std::vector<ConfigChange>& changes) {
  const std::string name = "compress_ratios";
  const auto find = [&](const auto& fields) -> const json* {
    const auto found = fields.find(name);
    return found == fields.end() ? nullptr : &found->second;
  };
  const json* a = find(before);
  const json* b = find(after);
  if (a == nullptr && b == nullptr) return;
  if (a == nullptr || b == nullptr || !a->is_array() || !b->is_array()) {
    if (a == nullptr || b == nullptr || *a != *b) {
      changes.push_back({name, value_text(a), value_text(b), Touches::kTarget,
                         "compression ratio of each layer"});
    }
    return;
  }
  const std::size_t cut_a = main_layers(before, a->size());
  const std::size_t cut_b = main_layers(after, b->size());
  const json main_a = slice(*a, 0, cut_a);
  const json main_b = slice(*b, 0, cut_b);
  if (main_a != main_b) {
    std::string where;
    for (std::size_t i = 0; i < std::min(cut_a, cut_b); ++i) {
      if (main_a[i] != main_b[i]) {
        where = fmt::format("; first at layer {}: {} -> {}", i, main_a[i].dump(), main_b[i].dump());
        break;
      }
    }
    changes.push_back({name + " (main layers)", value_text(&main_a), value_text(&main_b),
                       Touches::kTarget, "compression ratio of each main layer" + where});
  }
  const json rest_a = slice(*a, cut_a, a->size());
  const json rest_b = slice(*b, cut_b, b->size());
  if (rest_a != rest_b) {
    changes.push_back({name + " (beyond the main layers)", value_text(&rest_a), value_text(&rest_b),
                       Touches::kDrafter,
                       fmt::format("{} -> {} entries in all: one more for each drafter stage",
                                   a->size(), b->size())});
  }
}

// The form of the routed experts shows in the tensors, with what it changes; without the field the
// stored experts tell (spec section 2.7).
void diff_expert_dtype(const json* before, const json* after, std::vector<ConfigChange>& changes) {
  changes.push_back({"expert_dtype", value_text(before), value_text(after), Touches::kNothing,
                     "form of the routed experts; the stored tensors tell what it changes"});
}

std::uint64_t sum_bytes(const std::vector<Storage>& storages, std::size_t choice) {
  return storages.at(choice).bytes();
}

}  // namespace

std::string_view touches_name(Touches touches) {
  switch (touches) {
    case Touches::kTarget:
      return "target";
    case Touches::kDrafter:
      return "drafter";
    case Touches::kNothing:
      return "nothing";
    case Touches::kUnknown:
      return "unknown";
  }
  return "";
}

std::vector<ConfigChange> diff_configs(std::string_view before, std::string_view before_where,
                                       std::string_view after, std::string_view after_where) {
  const auto a = fields_of(before, before_where);
  const auto b = fields_of(after, after_where);
  std::map<std::string, std::pair<const json*, const json*>> both;
  for (const auto& [name, value] : a) both[name].first = &value;
  for (const auto& [name, value] : b) both[name].second = &value;
  std::vector<ConfigChange> changes;
  diff_ratios(a, b, changes);
  for (const auto& [name, values] : both) {
    if (name == "compress_ratios") continue;
    // json compares 10000 and 10000.0 as equal.
    if (values.first != nullptr && values.second != nullptr && *values.first == *values.second) {
      continue;
    }
    if (name == "expert_dtype") {
      diff_expert_dtype(values.first, values.second, changes);
    } else {
      changes.push_back(describe(name, values.first, values.second));
    }
  }
  const auto rank = [](Touches touches) {
    return touches == Touches::kTarget    ? 0
           : touches == Touches::kUnknown ? 1
           : touches == Touches::kDrafter ? 2
                                          : 3;
  };
  std::ranges::sort(changes, [&](const ConfigChange& x, const ConfigChange& y) {
    return std::pair(rank(x.touches), x.field) < std::pair(rank(y.touches), y.field);
  });
  return changes;
}

bool same_main_ratios(const ModelConfig& a, const ModelConfig& b) {
  return a.layers == b.layers &&
         std::equal(a.compress_ratios.begin(), a.compress_ratios.begin() + a.layers,
                    b.compress_ratios.begin());
}

ConfigFacts derive_facts(const ModelConfig& config, std::optional<int> stages) {
  ConfigFacts facts;
  for (int layer = 0; layer < config.layers; ++layer) {
    switch (config.kind(layer)) {
      case LayerKind::kSlidingOnly:
        ++facts.sliding_only_layers;
        break;
      case LayerKind::kSparse:
        ++facts.sparse_layers;
        break;
      case LayerKind::kDenseEntries:
        ++facts.dense_entries_layers;
        break;
    }
  }
  facts.ratio_entries = static_cast<int>(config.compress_ratios.size());
  facts.drafter = config.drafter;
  if (config.drafter != DrafterKind::kNone) {
    facts.drafter_stages = stages.value_or(facts.ratio_entries - config.layers);
  }
  const auto visit_into = [&](std::int64_t& tensors, std::uint64_t& bytes, bool target) {
    return [&, target](const ExpectedTensor& tensor) {
      const auto storages = legal_storages(tensor);
      const bool expert = tensor.encoding == Encoding::kExpert;
      const std::size_t choice = expert ? static_cast<std::size_t>(config.expert_dtype) : 0;
      tensors += storages.at(choice).tensors();
      const std::uint64_t size = sum_bytes(storages, choice);
      bytes += size;
      if (expert && target) facts.expert_bytes += size;
    };
  };
  const auto main = visit_into(facts.target_tensors, facts.target_bytes, true);
  visit_trunk_tensors(config, main);
  for (int layer = 0; layer < config.layers; ++layer) visit_layer_tensors(config, layer, main);
  const auto drafter = visit_into(facts.drafter_tensors, facts.drafter_bytes, false);
  for (int stage = 0; stage < facts.drafter_stages; ++stage) {
    visit_drafter_tensors(config, stage, facts.drafter_stages, drafter);
  }

  // An index key: 132 bytes (128 e4m3 and a float) in packed and unified. Reference keeps floats.
  const auto add_cache = [&](std::string_view backend, double entry, double index_key) {
    facts.caches.push_back(
        {std::string(backend),
         facts.sparse_layers * (entry + index_key) / 4 + facts.dense_entries_layers * entry / 128,
         static_cast<std::uint64_t>(config.layers) * static_cast<std::uint64_t>(config.window) *
             static_cast<std::uint64_t>(entry)});
  };
  const double row = 4.0 * config.head_dim;
  const double key = config.index_head_dim;
  add_cache("packed", 584, key + 4);
  add_cache("unified", 1024, key + 4);
  add_cache("unified fp8_e4m3", 640, key + 4);
  add_cache("reference", row, 4 * key);
  facts.indexer_idle_below = 4 * (std::int64_t{config.index_topk} + 1);
  return facts;
}

int gpus_needed(const ConfigFacts& facts, double gib, std::int64_t tokens) {
  const ConfigFacts::Cache& cache = facts.caches.front();
  const double bytes = static_cast<double>(facts.target_bytes) +
                       static_cast<double>(cache.window_bytes) +
                       cache.bytes_per_token * static_cast<double>(tokens);
  constexpr double kUsable = 0.9;
  int gpus = 1;
  while (gpus < 1 << 20 && bytes > kUsable * gib * 0x1p30 * gpus) gpus *= 2;
  return gpus;
}

}  // namespace cupel
