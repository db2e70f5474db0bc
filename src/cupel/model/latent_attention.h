// The attention half of a block: projections, norms, rotations, compressor and indexer around an
// attention backend (spec sections 3.5 to 3.10).
#pragma once

#include "cupel/attention/backend.h"
#include "cupel/checkpoint/config.h"
#include "cupel/kernels/executor.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/step.h"
#include "cupel/model/weights.h"

namespace cupel {

struct LatentAttentionParams {
  const ModelConfig* config = nullptr;
  const AttentionWeights* weights = nullptr;
  int layer = 0;
  Numerics numerics = Numerics::kReference;
  std::span<const float> rope_frequencies;  // of this layer's kind
  const RopeTable* rope = nullptr;          // the rows' positions at those frequencies
  AttentionBackend* backend = nullptr;
  const StepContext* step = nullptr;
  const float* x = nullptr;  // [rows, hidden], attn-normed
  float* out = nullptr;      // [rows, hidden]
};
void latent_attention(Executor& executor, const LatentAttentionParams& params);

}  // namespace cupel
