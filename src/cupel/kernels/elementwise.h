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

// x = round(round(x) * factor) if round_bf16, else x * factor; in place.
struct ScaleParams {
  float* x = nullptr;  // [count]
  std::size_t count = 0;
  float factor = 1;
  bool round_bf16 = false;
};
void scale(ThreadPool& pool, const ScaleParams& params);

}  // namespace cupel
