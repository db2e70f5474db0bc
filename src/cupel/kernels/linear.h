// Matrix products y = x W^T, the bulk of the work (spec section 3.3).
//
// Contract: the input index is cut into blocks (Matrix::sum_block, as the published kernels
// do); a block's sum is one ascending chain of fused multiply-adds from zero on the dequantised
// weight (exact for power-of-two scales); block sums are added in ascending order. A result does
// not depend on the other rows, the other outputs, the number of threads or the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/matrix.h"

namespace cupel {

struct LinearParams {
  const float* x = nullptr;  // [rows, k], rows x_stride apart
  std::size_t x_stride = 0;
  std::size_t rows = 0;
  // Two row numbers [begin, end), end <= rows, computed on the device before: only these rows of x
  // and out take part. nullptr: all.
  const std::int32_t* row_range = nullptr;
  const Matrix* weight = nullptr;  // [n, k], made by the executor that runs the product
  float* out = nullptr;            // [rows, n], rows out_stride apart
  std::size_t out_stride = 0;
  bool round_bf16 = false;  // store the nearest bf16 instead of the fp32 sum
};

// Runs all products as one parallel loop; they must not write the same memory.
void linear(ThreadPool& pool, std::span<const LinearParams> products);

inline void linear(ThreadPool& pool, const LinearParams& product) {
  linear(pool, std::span(&product, 1));
}

}  // namespace cupel
