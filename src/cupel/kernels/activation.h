// Activations: the quantiser in front of FP8 and FP4 products, and SwiGLU.
#pragma once

#include <cstddef>

#include "cupel/base/thread_pool.h"

namespace cupel {

// Fake quantisation to e4m3 with a power-of-two scale per group of 128 (spec section 3.3): out =
// e4m3(x / s) * s, exact in fp32. A last, shorter group is allowed. in == out is allowed. A NaN or
// an infinity makes its whole group NaN, as in formats/quantise.h.
struct QuantiseActivationParams {
  const float* in = nullptr;  // [rows, width], contiguous
  float* out = nullptr;       // [rows, width]
  std::size_t rows = 0;
  std::size_t width = 0;
};
void quantise_activation(ThreadPool& pool, const QuantiseActivationParams& params);

// h = silu(min(g, limit)) * clamp(u, -limit, limit) * weight (spec section 3.11). NaN stays NaN.
struct SwigluParams {
  const float* gate = nullptr;    // [rows, width]
  const float* up = nullptr;      // [rows, width]
  const float* weight = nullptr;  // [rows], or nullptr for 1
  float* out = nullptr;           // [rows, width]
  std::size_t rows = 0;
  std::size_t width = 0;
  float limit = 0;
  bool round_bf16 = false;
};
void swiglu(ThreadPool& pool, const SwigluParams& params);

}  // namespace cupel
