// Small element-wise operations.
#pragma once

#include <cstddef>

#include "cupel/base/thread_pool.h"

namespace cupel {

// y = H x / sqrt(width) with the natural-order (Sylvester) Hadamard matrix, in place; width a power
// of two, at most 512 (spec section 3.8.2).
struct HadamardParams {
  float* x = nullptr;  // [rows, width]
  std::size_t rows = 0;
  std::size_t width = 0;
  bool round_bf16 = false;
};
void hadamard(ThreadPool& pool, const HadamardParams& params);

// x = round(round(x) * factor) if round_bf16, else x * factor; in place over `count` elements.
void scale(float* x, std::size_t count, float factor, bool round_bf16);

}  // namespace cupel
