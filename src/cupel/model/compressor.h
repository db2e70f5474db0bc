// The compressor: pools the latents of every `ratio` tokens into one entry (spec section 3.7).
#pragma once

#include <span>

#include "cupel/kernels/executor.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/step.h"
#include "cupel/model/weights.h"

namespace cupel {

struct CompressorSettings {
  int ratio = 0;        // 4 (overlapping windows of 8) or 128
  std::size_t dim = 0;  // 512 main, 128 indexer
  float norm_eps = 0;
  Numerics numerics = Numerics::kReference;
  std::span<const float> rope_frequencies;
};

CompressorState fresh_compressor_state(DeviceMemory& memory, int ratio, std::size_t dim);

// Feeds x [rows, hidden] token by token into the states of the segments (states[s] belongs to
// segment s) and returns the entries they complete, [completed, dim], segment by segment: normed
// and rotated at the first token of the window, not quantised.
DeviceArray<float> compress(Executor& executor, const CompressorSettings& settings,
                            const CompressorWeights& weights, const StepContext& step,
                            std::span<CompressorState* const> states, const float* x);

}  // namespace cupel
