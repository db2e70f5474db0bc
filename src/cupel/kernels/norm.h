// Root-mean-square normalisation.
//
// Sums of squares use sixteen fixed lanes over the element index and one fixed tree.
#pragma once

#include <cstddef>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/numerics.h"

namespace cupel {

// The sum of x[i]^2 over `width` elements in the fixed order.
float sum_of_squares(const float* x, std::size_t width);

// out = w * (x * rsqrt(mean(x^2) + eps)), one rounding at the end (spec section 3.1).
struct RmsNormParams {
  const float* in = nullptr;      // [rows, width]
  const float* weight = nullptr;  // [width]
  float* out = nullptr;           // [rows, width]; may be `in`
  std::size_t rows = 0;
  std::size_t width = 0;
  float eps = 0;
  Numerics numerics = Numerics::kReference;
};
void rms_norm(ThreadPool& pool, const RmsNormParams& params);

// Per-head query norm without weight (spec 3.5.3), in place. kReference rounds every step to bf16
// as the reference network does.
struct HeadNormParams {
  float* x = nullptr;  // [rows, width]; a row is one head of one token
  std::size_t rows = 0;
  std::size_t width = 0;
  float eps = 0;
  Numerics numerics = Numerics::kReference;
};
void head_norm(ThreadPool& pool, const HeadNormParams& params);

}  // namespace cupel
