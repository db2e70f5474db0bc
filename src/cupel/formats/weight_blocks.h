// Scalar reference quantisers and dequantisers of weight matrices [rows, columns], row-major with
// the input axis last (spec/model.md 2.5). Special values as in quantise.h.
//
// Lengths that do not match throw std::invalid_argument: a defect of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cupel {

inline constexpr std::size_t kWeightBlock = 128;    // FP8: blocks of 128 x 128
inline constexpr std::size_t kFp4WeightGroup = 32;  // FP4: 32 consecutive inputs of one row
inline constexpr int kFp4BlockScaleHeadroom = 6;    // 2.6(2): block scale = max group scale / 2^6

// Shape of a matrix and, from it, of its scales: [ceil(rows / 128), ceil(columns / 128)] for FP8;
// blocks at the lower and right edge may be smaller.
struct MatrixShape {
  std::size_t rows = 0;
  std::size_t columns = 0;

  std::size_t elements() const { return rows * columns; }
  std::size_t block_columns() const { return (columns + kWeightBlock - 1) / kWeightBlock; }
  std::size_t blocks() const { return (rows + kWeightBlock - 1) / kWeightBlock * block_columns(); }
};

// FP8 with one E8M0 scale a block, chosen by the power-of-two rule of 3.3 from the amax of the
// block. `weights`, `codes` [rows, columns], `scales` [blocks].
void encode_fp8_weight(std::span<const float> weights, MatrixShape shape,
                       std::span<std::uint8_t> codes, std::span<std::uint8_t> scales);
// weights[o, i] = codes[o, i] * scales[o / 128, i / 128]. Checkpoints store scales as E8M0 or as
// float32 (2.7); the product is exact for power-of-two scales and rounded to float otherwise.
void decode_fp8_weight(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                       MatrixShape shape, std::span<float> weights);
void decode_fp8_weight(std::span<const std::uint8_t> codes, std::span<const float> scales,
                       MatrixShape shape, std::span<float> weights);

// FP4 with one E8M0 scale for 32 consecutive inputs of a row, by the rule of 3.8.3. `weights`
// [rows, columns], columns a multiple of 32; `packed` [rows, columns / 2], low nibble = even
// element; `scales` [rows, columns / 32].
void encode_fp4_weight(std::span<const float> weights, MatrixShape shape,
                       std::span<std::uint8_t> packed, std::span<std::uint8_t> scales);
void decode_fp4_weight(std::span<const std::uint8_t> packed, std::span<const std::uint8_t> scales,
                       MatrixShape shape, std::span<float> weights);

// The converter of 2.6(2): FP4 weight to FP8 blocks, block scale = largest group scale / 2^6.
// `packed` and `group_scales` as above, `codes` [rows, columns], `block_scales` [blocks]. Returns
// the number of elements whose value changed, 0 unless the scales inside a block spread beyond
// 2^14. A group with the NaN scale poisons its block. Group scales below 2^-121 keep the block
// scale 2^-127.
std::size_t convert_fp4_weight_to_fp8(std::span<const std::uint8_t> packed,
                                      std::span<const std::uint8_t> group_scales, MatrixShape shape,
                                      std::span<std::uint8_t> codes,
                                      std::span<std::uint8_t> block_scales);

}  // namespace cupel
