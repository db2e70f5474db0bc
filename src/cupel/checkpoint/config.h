// config.json of a DeepSeek-V4 checkpoint (spec section 1.1), parsed and checked for consistency.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cupel {

// How a layer sees the past beyond its sliding window (spec section 3.6).
enum class LayerKind {
  kSlidingOnly,   // ratio 0: window only, plain RoPE
  kSparse,        // ratio 4: entries chosen by the indexer ("CSA")
  kDenseEntries,  // ratio 128: every entry ("HCA")
};

// kBf16: routed experts stored without scales.
enum class ExpertDtype { kFp4, kFp8, kBf16 };

// As in config.json: "fp4", "fp8", "bf16".
std::string_view expert_dtype_name(ExpertDtype dtype);

enum class DrafterKind { kNone, kMtp, kDspark };
// "none", "mtp", "dspark".
std::string_view drafter_name(DrafterKind kind);

struct ModelConfig {
  // All sizes are counts of elements.
  int vocab_size = 0;
  int hidden_size = 0;
  int layers = 0;       // num_hidden_layers; drafter layers are not counted
  int hash_layers = 0;  // the first layers route by token id
  int heads = 0;
  int head_dim = 0;  // 512: 448 plain + 64 rotary
  int rope_dim = 0;  // 64
  int q_lora_rank = 0;
  int o_groups = 0;
  int o_lora_rank = 0;  // per group
  int routed_experts = 0;
  int shared_experts = 0;
  int experts_per_token = 0;
  int expert_width = 0;  // moe_intermediate_size
  int index_heads = 0;
  int index_head_dim = 0;  // 128
  int index_topk = 0;
  int window = 0;   // sliding_window, the query itself included
  int hc_mult = 0;  // residual streams
  int hc_sinkhorn_iters = 0;
  float hc_eps = 0;
  float rms_norm_eps = 0;
  float swiglu_limit = 0;
  float routed_scaling_factor = 0;
  std::int64_t max_position_embeddings = 0;

  double rope_theta = 0;           // layers of ratio 0
  double compress_rope_theta = 0;  // layers of any other ratio, with YaRN
  double yarn_factor = 0;
  double yarn_beta_fast = 0;
  double yarn_beta_slow = 0;
  double yarn_original_positions = 0;

  int bos_token_id = 0;
  int eos_token_id = 0;
  // Early and repacked configurations leave the field out. Then expert_dtype is a default until
  // Checkpoint sets it from the dtype of the stored experts (spec section 2.7).
  ExpertDtype expert_dtype = ExpertDtype::kFp4;
  bool expert_dtype_stated = false;

  // At least `layers` entries; those beyond belong to the drafter (44 or 46 in the published
  // files).
  std::vector<int> compress_ratios;

  DrafterKind drafter = DrafterKind::kNone;
  int nextn_predict_layers = 0;  // as written; says nothing about the number of DSpark stages
  int dspark_block_size = 0;
  int dspark_noise_token_id = 0;
  int dspark_markov_rank = 0;
  std::vector<int> dspark_target_layers;

  int ratio(int layer) const { return compress_ratios[static_cast<std::size_t>(layer)]; }
  LayerKind kind(int layer) const;
};

// Parses config.json text; `where` is the file named in errors. Throws InputError naming the field,
// what was expected and what was found: wrong type, missing field, unsupported model_type, sizes
// that do not fit together.
ModelConfig parse_config(std::string_view json, std::string_view where);
ModelConfig load_config(const std::filesystem::path& file);

}  // namespace cupel
