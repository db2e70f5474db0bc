#include "cupel/checkpoint/inspect.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

void add(TensorSum& sum, const Tensor& tensor) {
  ++sum.tensors;
  sum.bytes += tensor.bytes();
}

// The configuration, as lines of text and as members of a JSON object.
Json config_json(const ModelConfig& c) {
  return {{"vocab_size", c.vocab_size},
          {"hidden_size", c.hidden_size},
          {"layers", c.layers},
          {"hash_layers", c.hash_layers},
          {"hyper_connection_streams", c.hc_mult},
          {"heads", c.heads},
          {"head_dim", c.head_dim},
          {"rope_dim", c.rope_dim},
          {"q_lora_rank", c.q_lora_rank},
          {"o_groups", c.o_groups},
          {"o_lora_rank", c.o_lora_rank},
          {"sliding_window", c.window},
          {"index_heads", c.index_heads},
          {"index_head_dim", c.index_head_dim},
          {"index_topk", c.index_topk},
          {"routed_experts", c.routed_experts},
          {"experts_per_token", c.experts_per_token},
          {"shared_experts", c.shared_experts},
          {"expert_width", c.expert_width},
          {"expert_dtype", expert_dtype_name(c.expert_dtype)},
          {"expert_dtype_from", c.expert_dtype_stated ? "config.json" : "the stored experts"},
          {"max_position_embeddings", c.max_position_embeddings},
          {"rope_theta", c.rope_theta},
          {"compress_rope_theta", c.compress_rope_theta},
          {"yarn_factor", c.yarn_factor}};
}

Json sum_json(const TensorSum& sum) {
  return {{"tensors", sum.tensors}, {"bytes", sum.bytes}};
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string layers_text(const std::vector<int>& layers) {
  if (layers.empty()) return "none";
  std::string text = fmt::format("{}:", layers.size());
  for (const int layer : layers) text += fmt::format(" {}", layer);
  return text;
}

std::string sum_text(const TensorSum& sum) {
  return fmt::format("{:>7} tensors {:>16} bytes", sum.tensors, sum.bytes);
}

}  // namespace

InspectFacts inspect_checkpoint(const Checkpoint& checkpoint) {
  InspectFacts facts;
  facts.folder = checkpoint.folder().string();
  facts.fingerprint = checkpoint.fingerprint();
  facts.shards = static_cast<int>(checkpoint.shards().size());
  facts.config = checkpoint.config();
  facts.drafter_stages = checkpoint.drafter_stages();
  for (int layer = 0; layer < facts.config.layers; ++layer) {
    switch (facts.config.kind(layer)) {
      case LayerKind::kSlidingOnly:
        facts.sliding_only_layers.push_back(layer);
        break;
      case LayerKind::kSparse:
        facts.sparse_layers.push_back(layer);
        break;
      case LayerKind::kDenseEntries:
        facts.dense_entries_layers.push_back(layer);
        break;
    }
  }
  for (const CatalogueEntry& entry : checkpoint.catalogue()) {
    auto& dtype = facts.by_dtype[std::string(dtype_name(entry.tensor->dtype))];
    if (entry.used) {
      add(facts.used, *entry.tensor);
      add(dtype.used, *entry.tensor);
      add(facts.by_role[entry.role], *entry.tensor);
    } else {
      add(facts.skipped[entry.reason], *entry.tensor);
      add(dtype.skipped, *entry.tensor);
    }
  }
  return facts;
}

std::string inspect_text(const InspectFacts& facts) {
  std::string out = fmt::format("checkpoint   {}\nfingerprint  {}\nshards       {}\n\nconfig\n",
                                facts.folder, facts.fingerprint, facts.shards);
  const Json config = config_json(facts.config);
  for (const auto& [name, value] : config.items()) {
    out += fmt::format("  {:<25} {}\n", name, scalar_text(value));
  }
  out += "\nlayers by kind\n";
  const auto& f = facts;
  out += fmt::format("  sliding window only (ratio 0)    {}\n", layers_text(f.sliding_only_layers));
  out += fmt::format("  sparse, indexer (ratio 4)        {}\n", layers_text(f.sparse_layers));
  out +=
      fmt::format("  every entry (ratio 128)          {}\n", layers_text(f.dense_entries_layers));
  out += fmt::format("  drafter                          {}, {} stored\n",
                     drafter_name(f.config.drafter), facts.drafter_stages);
  out += fmt::format("\ntensors\n  {:<38} {}\n", "used", sum_text(facts.used));
  for (const auto& [reason, sum] : facts.skipped) {
    out += fmt::format("  {:<38} {}\n", fmt::format("skipped: {}", reason), sum_text(sum));
  }
  out += fmt::format("\nbytes by dtype {:>19} {:>16}\n", "used", "skipped");
  for (const auto& [dtype, sum] : facts.by_dtype) {
    out += fmt::format("  {:<13} {:>18} {:>16}\n", dtype, sum.used.bytes, sum.skipped.bytes);
  }
  out += "\nused tensors by role\n";
  for (const auto& [role, sum] : facts.by_role) {
    out += fmt::format("  {:<38} {}\n", role, sum_text(sum));
  }
  return out;
}

std::string inspect_json(const InspectFacts& facts) {
  Json skipped = Json::object();
  for (const auto& [reason, sum] : facts.skipped) skipped[reason] = sum_json(sum);
  Json dtypes = Json::object();
  for (const auto& [dtype, sum] : facts.by_dtype) {
    dtypes[dtype] = {{"used", sum_json(sum.used)}, {"skipped", sum_json(sum.skipped)}};
  }
  Json roles = Json::object();
  for (const auto& [role, sum] : facts.by_role) roles[role] = sum_json(sum);
  const Json out = {
      {"folder", facts.folder},
      {"fingerprint", facts.fingerprint},
      {"shards", facts.shards},
      {"config", config_json(facts.config)},
      {"layers",
       {{"sliding_only", facts.sliding_only_layers},
        {"sparse", facts.sparse_layers},
        {"dense_entries", facts.dense_entries_layers}}},
      {"drafter", {{"kind", drafter_name(facts.config.drafter)}, {"stages", facts.drafter_stages}}},
      {"used", sum_json(facts.used)},
      {"skipped", skipped},
      {"by_dtype", dtypes},
      {"by_role", roles}};
  // A path need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_inspect(const std::filesystem::path& folder, bool json, bool headers_only) {
  using Data = SafetensorsFile::Data;
  const Checkpoint checkpoint(folder, headers_only ? Data::kHeaderOnly : Data::kRequired);
  const InspectFacts facts = inspect_checkpoint(checkpoint);
  fmt::print("{}", json ? inspect_json(facts) : inspect_text(facts));
  return static_cast<int>(ExitCode::kPass);
}

}  // namespace cupel
