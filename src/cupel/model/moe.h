// The mixture-of-experts half of a block (spec section 3.11).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/checkpoint/config.h"
#include "cupel/kernels/executor.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/step.h"
#include "cupel/model/weights.h"

namespace cupel {

struct MoeParams {
  const ModelConfig* config = nullptr;
  const MoeWeights* weights = nullptr;
  Numerics numerics = Numerics::kReference;
  std::size_t rows = 0;
  const std::int32_t* ids = nullptr;  // [rows] token ids, for hash layers
  const float* x = nullptr;           // [rows, hidden], ffn-normed
  float* out = nullptr;               // [rows, hidden]
  int layer = 0;                      // for the taps
  const StepTaps* taps = nullptr;
};
void moe(Executor& executor, const MoeParams& params);

}  // namespace cupel
