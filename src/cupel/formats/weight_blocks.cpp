#include "cupel/formats/weight_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "cupel/formats/quantise.h"

namespace cupel {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void check_fp8(std::size_t weights, std::size_t codes, std::size_t scales, MatrixShape shape) {
  require(weights == shape.elements() && codes == shape.elements(), "rows * columns expected");
  require(scales == shape.blocks(), "one scale a block of 128 x 128 expected");
}

void check_fp4(std::size_t weights, std::size_t packed, std::size_t scales, MatrixShape shape) {
  require(shape.columns % kFp4WeightGroup == 0, "columns not a multiple of 32");
  require(weights == shape.elements() && packed == shape.elements() / 2,
          "rows * columns expected, two elements a byte");
  require(scales == shape.elements() / kFp4WeightGroup, "one scale for 32 elements expected");
}

// Calls fn(first element, count) for the part of each row that lies in `block`.
template <class Fn>
void for_each_run(MatrixShape shape, std::size_t block, const Fn& fn) {
  const std::size_t row = block / shape.block_columns() * kWeightBlock;
  const std::size_t column = block % shape.block_columns() * kWeightBlock;
  const std::size_t width = std::min(kWeightBlock, shape.columns - column);
  const std::size_t end = std::min(row + kWeightBlock, shape.rows);
  for (std::size_t r = row; r < end; ++r) fn(r * shape.columns + column, width);
}

template <class ScaleOfBlock>
void decode_fp8(std::span<const std::uint8_t> codes, MatrixShape shape, std::span<float> weights,
                const ScaleOfBlock& scale_of_block) {
  for (std::size_t block = 0; block < shape.blocks(); ++block) {
    const float scale = scale_of_block(block);
    for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        weights[i] = e4m3_to_float(codes[i]) * scale;
      }
    });
  }
}

}  // namespace

void encode_fp8_weight(std::span<const float> weights, MatrixShape shape,
                       std::span<std::uint8_t> codes, std::span<std::uint8_t> scales) {
  check_fp8(weights.size(), codes.size(), scales.size(), shape);
  for (std::size_t block = 0; block < shape.blocks(); ++block) {
    // Maximum over bit patterns, as magnitude_max does within a run: NaN stays on top.
    std::uint32_t amax = 0;
    for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
      amax = std::max(amax,
                      std::bit_cast<std::uint32_t>(magnitude_max(weights.subspan(first, count))));
    });
    const int exponent = e4m3_scale_exponent(std::bit_cast<float>(amax));
    scales[block] = e8m0_from_exponent(exponent);
    const bool poisoned = exponent == kNanScaleExponent;
    const float inverse = poisoned ? 1.0f : e8m0_to_float(e8m0_from_exponent(-exponent));
    for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        codes[i] = poisoned ? kE4m3Nan : e4m3_from_float(weights[i] * inverse);
      }
    });
  }
}

void decode_fp8_weight(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                       MatrixShape shape, std::span<float> weights) {
  check_fp8(weights.size(), codes.size(), scales.size(), shape);
  decode_fp8(codes, shape, weights,
             [&](std::size_t block) { return e8m0_to_float(scales[block]); });
}

void decode_fp8_weight(std::span<const std::uint8_t> codes, std::span<const float> scales,
                       MatrixShape shape, std::span<float> weights) {
  check_fp8(weights.size(), codes.size(), scales.size(), shape);
  decode_fp8(codes, shape, weights, [&](std::size_t block) { return scales[block]; });
}

void encode_fp4_weight(std::span<const float> weights, MatrixShape shape,
                       std::span<std::uint8_t> packed, std::span<std::uint8_t> scales) {
  check_fp4(weights.size(), packed.size(), scales.size(), shape);
  encode_e2m1(weights, kFp4WeightGroup, packed, scales);
}

void decode_fp4_weight(std::span<const std::uint8_t> packed, std::span<const std::uint8_t> scales,
                       MatrixShape shape, std::span<float> weights) {
  check_fp4(weights.size(), packed.size(), scales.size(), shape);
  decode_e2m1(packed, scales, kFp4WeightGroup, weights);
}

std::size_t convert_fp4_weight_to_fp8(std::span<const std::uint8_t> packed,
                                      std::span<const std::uint8_t> group_scales, MatrixShape shape,
                                      std::span<std::uint8_t> codes,
                                      std::span<std::uint8_t> block_scales) {
  check_fp4(codes.size(), packed.size(), group_scales.size(), shape);
  check_fp8(codes.size(), codes.size(), block_scales.size(), shape);
  std::size_t changed = 0;
  for (std::size_t block = 0; block < shape.blocks(); ++block) {
    std::uint8_t largest = 0;
    for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
      const auto scales = group_scales.subspan(first / kFp4WeightGroup, count / kFp4WeightGroup);
      largest = std::max(largest, *std::ranges::max_element(scales));
    });
    if (largest == kE8m0Nan) {
      block_scales[block] = kE8m0Nan;
      for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
        std::ranges::fill(codes.subspan(first, count), kE4m3Nan);
      });
      continue;
    }
    const int block_code = std::max(0, largest - kFp4BlockScaleHeadroom);
    block_scales[block] = static_cast<std::uint8_t>(block_code);
    for_each_run(shape, block, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        const std::uint8_t pair = packed[i / 2];
        const float value = e2m1_to_float(i % 2 == 0 ? e2m1_even(pair) : e2m1_odd(pair));
        const int shift = group_scales[i / kFp4WeightGroup] - block_code;
        const double exact = std::ldexp(static_cast<double>(value), shift);
        codes[i] = e4m3_from_float(static_cast<float>(exact));
        changed += e4m3_to_float(codes[i]) != exact;
      }
    });
  }
  return changed;
}

}  // namespace cupel
