// Products in pairs of bf16 (AVX-512 BF16), exact in the bits of linear.h.
//
// VDPBF16PS adds two products of bf16 numbers to an fp32 lane, the one of the upper half first. A
// product of two bf16 numbers is exact in fp32, so each addition is a fused multiply-add, and a
// sequence of these instructions is the ascending chain of linear.h if the lower input index stands
// in the upper half. FP4 and FP8 weights without their scale are bf16 numbers, and so are
// quantised activations; rows that are not take the fp32 kernels. Results below the normal range,
// which the instruction flushes, cannot come up where scales are applied to sums
// (PackedMatrix::Scales::kModerate and inputs within its range).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/kernels/cpu/linear_units.h"

namespace cupel {

// True if the processor has the instruction and VBMI, and adds in that order: tried once, on fixed
// numbers whose sum depends on it.
bool has_bf16_dots();

// Rows `x_stride` apart as [k / 2][rows] words: x[2 i] in the upper half, x[2 i + 1] in the lower.
// False if a value is not a bf16 number that is zero or in [2^-60, 2^40]; `pairs` is then of no
// use. k is even.
bool bf16_pairs(const float* x, std::size_t x_stride, std::size_t rows, std::size_t k,
                std::uint32_t* pairs);

// A unit with `dots`: kFp4 or kFp8 of moderate scales, k a multiple of 4. With packed_x tiles of
// pairs; else `pairs` [rows][k / 2].
void run_bf16_unit(const LinearUnit& unit);

}  // namespace cupel
