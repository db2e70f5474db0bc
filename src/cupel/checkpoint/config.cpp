#include "cupel/checkpoint/config.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/checkpoint/config_fields.h"
#include "cupel/checkpoint/quote.h"

namespace cupel {
namespace {

using nlohmann::json;

// Bounds that no product of the sizes below can overflow 64 bits under; far above any real model.
constexpr int kMaxSize = 1 << 20;
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxLayers = 1 << 10;
constexpr int kMaxExperts = 1 << 12;
constexpr int kDeepest = 64;

json parse_json(std::string_view text, std::string_view where) {
  // A duplicate would silently win or lose: refuse it.
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    // What comes later walks the tree by recursion.
    if (depth > kDeepest) {
      throw InputError(where, fmt::format("JSON nested at most {} deep", kDeepest), "more");
    }
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        throw InputError(fmt::format("{}: field {}", where, quote(key)), "one such field", "two");
      }
    }
    return true;
  };
  try {
    json root = json::parse(text, watch);
    if (!root.is_object()) throw InputError(where, "a JSON object", root.type_name());
    return root;
  } catch (const json::exception& error) {
    throw InputError(where, "valid JSON", fmt::format("an error: {}", quote(error.what())));
  }
}

void require_multiple(const ConfigFields& fields, std::string_view name, int value, int factor) {
  if (value % factor != 0) fields.fail(name, fmt::format("a multiple of {}", factor));
}

void read_sizes(const ConfigFields& fields, ModelConfig& config) {
  config.vocab_size = fields.integer("vocab_size", 1, kMaxVocabulary);
  // Activations and weights are quantised in groups of 128 along every contracted dimension.
  config.hidden_size = fields.integer("hidden_size", 1, kMaxSize);
  require_multiple(fields, "hidden_size", config.hidden_size, 128);
  config.q_lora_rank = fields.integer("q_lora_rank", 1, kMaxSize);
  require_multiple(fields, "q_lora_rank", config.q_lora_rank, 128);
  config.o_lora_rank = fields.integer("o_lora_rank", 1, kMaxSize);
  require_multiple(fields, "o_lora_rank", config.o_lora_rank, 128);
  config.expert_width = fields.integer("moe_intermediate_size", 1, kMaxSize);
  require_multiple(fields, "moe_intermediate_size", config.expert_width, 128);

  config.layers = fields.integer("num_hidden_layers", 1, kMaxLayers);
  config.hash_layers = fields.integer("num_hash_layers", 0, config.layers);
  config.heads = fields.integer("num_attention_heads", 1, kMaxExperts);
  config.o_groups = fields.integer("o_groups", 1, config.heads);
  if (config.heads % config.o_groups != 0) {
    fields.fail("o_groups", fmt::format("a divisor of num_attention_heads = {}", config.heads));
  }
  constexpr std::string_view kLayout = "what the cache layouts store";
  fields.require_integer("head_dim", 512, kLayout);
  fields.require_integer("qk_rope_head_dim", 64, kLayout);
  fields.require_integer("index_head_dim", 128, kLayout);
  fields.require_integer("sliding_window", 128, kLayout);
  fields.require_integer("num_key_value_heads", 1, kLayout);
  fields.require_integer("hc_mult", 4, "the only supported number of residual streams");
  config.head_dim = 512;
  config.rope_dim = 64;
  config.index_head_dim = 128;
  config.window = 128;
  config.hc_mult = 4;
  config.index_heads = fields.integer("index_n_heads", 1, kMaxExperts);
  config.index_topk = fields.integer("index_topk", 1, kMaxSize);

  config.routed_experts = fields.integer("n_routed_experts", 1, kMaxExperts);
  config.shared_experts = fields.integer("n_shared_experts", 1, 64);
  config.experts_per_token = fields.integer("num_experts_per_tok", 1, config.routed_experts);
  config.hc_sinkhorn_iters = fields.integer("hc_sinkhorn_iters", 1, 1000);
  config.max_position_embeddings =
      fields.integer64("max_position_embeddings", 1, std::numeric_limits<int>::max());
  config.bos_token_id = fields.integer("bos_token_id", 0, config.vocab_size - 1);
  config.eos_token_id = fields.integer("eos_token_id", 0, config.vocab_size - 1);
}

void read_constants(const ConfigFields& fields, ModelConfig& config) {
  config.hc_eps = static_cast<float>(fields.positive("hc_eps"));
  config.rms_norm_eps = static_cast<float>(fields.positive("rms_norm_eps"));
  config.swiglu_limit = static_cast<float>(fields.positive("swiglu_limit"));
  config.routed_scaling_factor = static_cast<float>(fields.positive("routed_scaling_factor"));
}

void read_rope(const ConfigFields& fields, ModelConfig& config) {
  config.rope_theta = fields.positive("rope_theta");
  config.compress_rope_theta = fields.positive("compress_rope_theta");
  const ConfigFields scaling = fields.object("rope_scaling");
  scaling.require_text(scaling.has("type") || !scaling.has("rope_type") ? "type" : "rope_type",
                       "yarn");
  config.yarn_factor = scaling.positive("factor");
  if (config.yarn_factor < 1) scaling.fail("factor", "at least 1");
  config.yarn_beta_fast = scaling.positive("beta_fast");
  config.yarn_beta_slow = scaling.positive("beta_slow");
  if (config.yarn_beta_fast <= config.yarn_beta_slow) {
    scaling.fail("beta_fast", fmt::format("more than beta_slow = {}", config.yarn_beta_slow));
  }
  config.yarn_original_positions = scaling.positive("original_max_position_embeddings");
}

void read_ratios(const ConfigFields& fields, ModelConfig& config) {
  constexpr std::string_view kName = "compress_ratios";
  config.compress_ratios = fields.integers(kName, 0, 128);
  const auto& ratios = config.compress_ratios;
  if (ratios.size() < static_cast<std::size_t>(config.layers)) {
    fields.fail(kName, fmt::format("at least {} entries, one a hidden layer", config.layers),
                fmt::format("{} entries", ratios.size()));
  }
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    if (ratios[i] != 0 && ratios[i] != 4 && ratios[i] != 128) {
      fields.fail(fmt::format("{}[{}]", kName, i), "0, 4 or 128", fmt::format("{}", ratios[i]));
    }
  }
}

// Fields that choose a variant of the network: only one is implemented.
void require_variant(const ConfigFields& fields) {
  fields.require_text("hidden_act", "silu");
  fields.require_text("scoring_func", "sqrtsoftplus");
  fields.require_text("topk_method", "noaux_tc");
  fields.require_bool_if_present("norm_topk_prob", true);
  fields.require_bool_if_present("attention_bias", false);
  fields.require_bool_if_present("tie_word_embeddings", false);
  const ConfigFields quantization = fields.object("quantization_config");
  quantization.require_text("quant_method", "fp8");
  quantization.require_text("fmt", "e4m3");
  quantization.require_text("activation_scheme", "dynamic");
  quantization.require_text("scale_fmt", "ue8m0");
  if (quantization.integers("weight_block_size", 1, kMaxSize) != std::vector<int>{128, 128}) {
    quantization.fail("weight_block_size", "[128,128], the only supported value");
  }
}

void read_expert_dtype(const ConfigFields& fields, ModelConfig& config) {
  if (!fields.has("expert_dtype")) return;
  const std::string text = fields.text("expert_dtype");
  for (const auto dtype : {ExpertDtype::kFp4, ExpertDtype::kFp8, ExpertDtype::kBf16}) {
    if (text != expert_dtype_name(dtype)) continue;
    config.expert_dtype = dtype;
    config.expert_dtype_stated = true;
    return;
  }
  fields.fail("expert_dtype", R"("fp4", "fp8" or "bf16")");
}

void read_drafter(const ConfigFields& fields, ModelConfig& config) {
  if (fields.has("num_nextn_predict_layers")) {
    config.nextn_predict_layers = fields.integer("num_nextn_predict_layers", 0, 64);
  }
  if (!fields.has("dspark_block_size")) {
    config.drafter = config.nextn_predict_layers > 0 ? DrafterKind::kMtp : DrafterKind::kNone;
    return;
  }
  config.drafter = DrafterKind::kDspark;
  config.dspark_block_size = fields.integer("dspark_block_size", 1, 64);
  config.dspark_noise_token_id = fields.integer("dspark_noise_token_id", 0, config.vocab_size - 1);
  config.dspark_markov_rank = fields.integer("dspark_markov_rank", 1, kMaxSize);
  constexpr std::string_view kTargets = "dspark_target_layer_ids";
  config.dspark_target_layers = fields.integers(kTargets, 0, config.layers - 1);
  const auto& targets = config.dspark_target_layers;
  if (targets.empty() || !std::ranges::is_sorted(targets, std::less_equal<>())) {
    fields.fail(kTargets, "at least one layer, in ascending order");
  }
}

}  // namespace

std::string_view drafter_name(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::kNone:
      return "none";
    case DrafterKind::kMtp:
      return "mtp";
    case DrafterKind::kDspark:
      return "dspark";
  }
  return "";
}

std::string_view expert_dtype_name(ExpertDtype dtype) {
  switch (dtype) {
    case ExpertDtype::kFp4:
      return "fp4";
    case ExpertDtype::kFp8:
      return "fp8";
    case ExpertDtype::kBf16:
      return "bf16";
  }
  return "";
}

LayerKind ModelConfig::kind(int layer) const {
  switch (ratio(layer)) {
    case 0:
      return LayerKind::kSlidingOnly;
    case 4:
      return LayerKind::kSparse;
    default:
      return LayerKind::kDenseEntries;  // 128: parse_config lets nothing else pass
  }
}

ModelConfig parse_config(std::string_view text, std::string_view where) {
  const json root = parse_json(text, where);
  const ConfigFields fields(root, std::string(where), "");
  if (fields.text("model_type") != "deepseek_v4") {
    fields.fail("model_type", "a supported model type (deepseek_v4)");
  }
  ModelConfig config;
  read_sizes(fields, config);
  read_constants(fields, config);
  read_rope(fields, config);
  read_ratios(fields, config);
  require_variant(fields);
  read_expert_dtype(fields, config);
  read_drafter(fields, config);
  return config;
}

ModelConfig load_config(const std::filesystem::path& file) {
  return parse_config(read_file(file), file.string());
}

}  // namespace cupel
