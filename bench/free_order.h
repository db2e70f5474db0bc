// A one-row product that may add in any order: what the determinism contract costs is the time of
// linear() against this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/base/thread_pool.h"
#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel::bench {

inline constexpr std::size_t kFreeOrderPanels = 4;  // side by side, as linear() has them

// out [n] = W x, by what linear() takes for the format: the same decoding, reading ahead, packing
// of the row and cut into units; but two chains for each output, and none cut into blocks where no
// scale needs it. FP8 and BF16; FP4 by pairs of bf16 alone (linear() adds integers elsewhere, in
// any order). n is a multiple of 64, k of 128; x is quantised and the scales are powers of two.
void free_order_product(ThreadPool& pool, const PackedMatrix& weight, const float* x, float* out);
bool has_free_order(PackedMatrix::Format format);

// Panels [first, first + kFreeOrderPanels) by pairs of bf16; pairs [k / 2].
void free_order_pairs(const PackedMatrix& weight, std::size_t first, const std::uint32_t* pairs,
                      float* out);

}  // namespace cupel::bench
