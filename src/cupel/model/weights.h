// The weights of the target network (spec section 2.2), where an executor works on them: repacked
// once, or used in the published layout from the checkpoint's map.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cupel/checkpoint/weight_source.h"
#include "cupel/kernels/executor.h"

namespace cupel {

using Weight = std::unique_ptr<Matrix>;

struct HyperWeights {
  Weight fn;                 // [(2 + hc) * hc, hc * hidden]; [hc, hc * hidden] for the head
  DeviceArray<float> base;   // [(2 + hc) * hc] or [hc]
  DeviceArray<float> scale;  // [3] or [1]
};

// R = ratio, D = 512 (main) or 128 (indexer), C = 2 D for ratio 4, D for ratio 128.
struct CompressorWeights {
  Weight wkv, wgate;        // [C, hidden]
  DeviceArray<float> ape;   // [R, C]
  DeviceArray<float> norm;  // [D]
};

struct IndexerWeights {
  Weight wq_b;          // [index_heads * 128, q_rank]
  Weight weights_proj;  // [index_heads, hidden]
  CompressorWeights compressor;
};

struct AttentionWeights {
  Weight wq_a;                                  // [q_rank, hidden]
  Weight wq_b;                                  // [heads * 512, q_rank]
  Weight wkv;                                   // [512, hidden]
  std::vector<Weight> wo_a;                     // o_groups of [o_rank, heads * 512 / o_groups]
  Weight wo_b;                                  // [hidden, o_groups * o_rank]
  DeviceArray<float> q_norm;                    // [q_rank]
  DeviceArray<float> kv_norm;                   // [512]
  DeviceArray<float> sink;                      // [heads]
  std::optional<CompressorWeights> compressor;  // ratio 4 and 128
  std::optional<IndexerWeights> indexer;        // ratio 4
};

struct ExpertWeights {
  Weight w1, w3;  // gate, up: [width, hidden]
  Weight w2;      // down: [hidden, width]
};

struct MoeWeights {
  Weight gate;                        // [experts, hidden], fp32
  DeviceArray<float> bias;            // [experts]; empty in hash layers
  DeviceArray<std::int32_t> tid2eid;  // [vocab, experts_per_token]; hash layers only
  std::vector<ExpertWeights> experts;
  std::vector<ExpertWeights> shared;  // one an shared expert
};

struct LayerWeights {
  HyperWeights hc_attn, hc_ffn;
  DeviceArray<float> attn_norm, ffn_norm;  // [hidden]
  AttentionWeights attention;
  MoeWeights moe;
};

struct NetworkWeights {
  DeviceArray<std::uint16_t> embedding;  // [vocab, hidden] bf16
  std::vector<LayerWeights> layers;
  HyperWeights hc_head;
  DeviceArray<float> norm;  // [hidden]
  Weight head;              // [vocab, hidden], fp32 arithmetic

  // Bytes held; of a map in use, not its own.
  std::size_t bytes = 0;
  // With WeightsForm::kMap: what the matrices point into.
  std::shared_ptr<const void> map;
};

enum class WeightsForm {
  kRepack,  // all in memory, in the order the kernels read
  kMap,     // matrices stay in the map, where there is one: slower, but as large as the disk
};

// "repack" or "map"; throws InputError otherwise.
WeightsForm parse_weights_form(std::string_view name);

// Throws InputError for a weight code that is NaN (kRepack: all are read; kMap: none) and for FP4
// scales that are no powers of two.
NetworkWeights load_weights(const WeightSource& source, Executor& executor,
                            WeightsForm form = WeightsForm::kRepack);

}  // namespace cupel
