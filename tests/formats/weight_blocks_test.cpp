#include "cupel/formats/weight_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "formats/double_rule.h"
#include <gtest/gtest.h>

#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"

namespace cupel {
namespace {

using test::e2m1_grid;
using test::e4m3_grid;
using test::same;

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

// All finite bf16 values by magnitude, so that blocks of neighbours differ widely in scale.
Floats sorted_bf16() {
  Floats values = test::all_bf16();
  std::erase_if(values, [](float value) { return !std::isfinite(value); });
  std::ranges::stable_sort(values, {}, [](float value) { return std::fabs(value); });
  return values;
}

// Holds codes, scales and decoded weights against the rule in double, element by element.
void check_fp8(const Floats& weights, MatrixShape shape) {
  Bytes codes(weights.size());
  Bytes scales(shape.blocks());
  encode_fp8_weight(weights, shape, codes, scales);
  Floats decoded(weights.size());
  decode_fp8_weight(codes, scales, shape, decoded);
  const std::size_t across = (shape.columns + 127) / 128;
  std::vector<double> amax(shape.blocks());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double& block = amax.at(i / shape.columns / 128 * across + i % shape.columns / 128);
    block = std::fmax(block, std::fabs(static_cast<double>(weights[i])));
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t block = i / shape.columns / 128 * across + i % shape.columns / 128;
    const int exponent = test::smallest_exponent(amax[block], 448, 1e-4f);
    ASSERT_EQ(scales[block], exponent + 127);
    const unsigned code =
        e4m3_grid().nearest(std::ldexp(static_cast<double>(weights[i]), -exponent));
    ASSERT_EQ(codes[i], code) << weights[i];
    const float expected = test::to_float(std::ldexp(e4m3_grid().value(code), exponent));
    ASSERT_TRUE(same(decoded[i], expected)) << weights[i];
  }
}

TEST(Fp8Weight, EveryFiniteBf16Value) {
  const Floats values = sorted_bf16();
  const MatrixShape shape{values.size() / 128, 128};
  ASSERT_EQ(shape.elements(), values.size());
  check_fp8(values, shape);
  // The same values spread over all blocks: small ones under a large scale.
  Floats spread(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) spread[i * 32749 % values.size()] = values[i];
  check_fp8(spread, shape);
}

TEST(Fp8Weight, BlocksAtTheEdgeAreSmaller) {
  for (const MatrixShape shape : {MatrixShape{1, 1}, {130, 200}, {128, 129}, {257, 64}}) {
    Floats weights(shape.elements());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = round_bf16(
          std::ldexp(std::sin(static_cast<float>(i)),
                     static_cast<int>(i / shape.columns / 128 * 5 + i % shape.columns / 128 * 3)));
    }
    check_fp8(weights, shape);
  }
}

TEST(Fp8Weight, NanAndInfinityPoisonTheirBlockOnly) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const MatrixShape shape{256, 256};
    Floats weights(shape.elements(), 1.0f);
    weights[130 * 256 + 5] = bad;  // block 2
    Bytes codes(weights.size());
    Bytes scales(4);
    encode_fp8_weight(weights, shape, codes, scales);
    Floats decoded(weights.size());
    decode_fp8_weight(codes, scales, shape, decoded);
    EXPECT_EQ(scales[2], kE8m0Nan);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool inside = i / 256 >= 128 && i % 256 < 128;
      ASSERT_EQ(codes[i] == kE4m3Nan, inside);
      ASSERT_EQ(std::isnan(decoded[i]), inside);
    }
  }
}

TEST(Fp8Weight, FloatScalesDecodeEveryCode) {
  const MatrixShape shape{256, 128};
  Bytes codes(shape.elements());
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  const Floats scales = {0.3f, 0x1p-5f};
  Floats weights(codes.size());
  decode_fp8_weight(codes, scales, shape, weights);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if ((codes[i] & 0x7f) == 0x7f) {
      ASSERT_TRUE(std::isnan(weights[i]));
      continue;
    }
    const double exact = e4m3_grid().value(codes[i]) * scales[i / (128 * 128)];
    ASSERT_TRUE(same(weights[i], static_cast<float>(exact)));
  }
}

TEST(Fp4Weight, EveryFiniteBf16Value) {
  const Floats values = sorted_bf16();
  const MatrixShape shape{values.size() / 128, 128};
  Bytes packed(values.size() / 2);
  Bytes scales(values.size() / 32);
  encode_fp4_weight(values, shape, packed, scales);
  Floats decoded(values.size());
  decode_fp4_weight(packed, scales, shape, decoded);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double amax = 0;
    for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) {
      amax = std::fmax(amax, std::fabs(static_cast<double>(values[j])));
    }
    const int exponent = test::smallest_exponent(amax, 6, std::ldexp(6.0, -126));
    ASSERT_EQ(scales[i / 32], exponent + 127);
    const unsigned code =
        e2m1_grid().nearest(std::ldexp(static_cast<double>(values[i]), -exponent));
    ASSERT_EQ(i % 2 == 0 ? packed[i / 2] & 15u : packed[i / 2] >> 4u, code);
    const float expected = test::to_float(std::ldexp(e2m1_grid().value(code), exponent));
    ASSERT_TRUE(same(decoded[i], expected)) << values[i];
  }
}

TEST(Fp4Weight, EveryPackedByteUnderEveryScale) {
  const MatrixShape shape{256, 512};  // a row for each scale byte, all 256 pairs in a row
  Bytes packed(shape.elements() / 2);
  Bytes scales(shape.elements() / 32);
  for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::uint8_t>(i / 16);
  Floats weights(shape.elements());
  decode_fp4_weight(packed, scales, shape, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto scale = static_cast<int>(i / 512);
    const unsigned code = i % 2 == 0 ? packed[i / 2] % 16u : packed[i / 2] / 16u;
    const float expected = scale == 255
                               ? std::numeric_limits<float>::quiet_NaN()
                               : test::to_float(std::ldexp(e2m1_grid().value(code), scale - 127));
    ASSERT_TRUE(same(weights[i], expected)) << i;
  }
}

// One block, its groups alternating between two scales `spread` binary orders apart.
struct TwoScales {
  MatrixShape shape{130, 160};
  Bytes packed, group_scales, codes, block_scales;
  std::size_t changed;

  TwoScales(int largest, int spread)
      : packed(shape.elements() / 2),
        group_scales(shape.elements() / 32),
        codes(shape.elements()),
        block_scales(shape.blocks()) {
    for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::uint8_t>(i);
    for (std::size_t i = 0; i < group_scales.size(); ++i) {
      group_scales[i] = static_cast<std::uint8_t>(i % 2 == 0 ? largest : largest - spread);
    }
    changed = convert_fp4_weight_to_fp8(packed, group_scales, shape, codes, block_scales);
  }

  std::size_t differences() const {
    Floats before(shape.elements());
    Floats after(shape.elements());
    decode_fp4_weight(packed, group_scales, shape, before);
    decode_fp8_weight(codes, block_scales, shape, after);
    std::size_t count = 0;
    for (std::size_t i = 0; i < before.size(); ++i) count += same(before[i], after[i]) ? 0 : 1;
    return count;
  }
};

// 2.6(2): exact as long as a group scale is at least 2^-14 of the largest in the block.
TEST(Fp4ToFp8, IsExactUpToASpreadOf14) {
  for (int spread = 0; spread <= 14; ++spread) {
    const TwoScales converted(120, spread);
    EXPECT_EQ(converted.changed, 0u) << spread;
    EXPECT_EQ(converted.differences(), 0u) << spread;
    EXPECT_EQ(converted.block_scales[0], 120 - 6);
  }
}

TEST(Fp4ToFp8, CountsWhatChangesBeyondThat) {
  for (const int spread : {15, 20, 100}) {
    const TwoScales converted(120, spread);
    EXPECT_GT(converted.changed, 0u) << spread;
    EXPECT_EQ(converted.changed, converted.differences()) << spread;
  }
}

TEST(Fp4ToFp8, SmallestScalesKeepTheSmallestBlockScale) {
  const TwoScales converted(5, 5);
  EXPECT_EQ(converted.block_scales[0], 0);
  EXPECT_EQ(converted.changed, 0u);
  EXPECT_EQ(converted.differences(), 0u);
}

TEST(Fp4ToFp8, NanScalePoisonsItsBlock) {
  const TwoScales converted(kE8m0Nan, 100);
  EXPECT_EQ(converted.block_scales[0], kE8m0Nan);
  EXPECT_EQ(converted.codes[0], kE4m3Nan);
}

TEST(WeightBlocks, RefuseLengthsThatDoNotMatch) {
  const MatrixShape shape{2, 64};
  Floats weights(128);
  Bytes codes(128);
  Bytes packed(64);
  Bytes one(1);
  Bytes two(2);
  EXPECT_THROW(encode_fp8_weight(weights, {2, 63}, codes, one), std::invalid_argument);
  EXPECT_THROW(encode_fp8_weight(weights, shape, packed, one), std::invalid_argument);
  EXPECT_THROW(encode_fp8_weight(weights, shape, codes, two), std::invalid_argument);
  EXPECT_THROW(decode_fp8_weight(packed, one, shape, weights), std::invalid_argument);
  EXPECT_THROW(decode_fp8_weight(codes, Floats(2), shape, weights), std::invalid_argument);
  EXPECT_THROW(encode_fp4_weight(weights, shape, packed, two), std::invalid_argument);
  EXPECT_THROW(decode_fp4_weight(packed, Bytes(4), {4, 48}, weights), std::invalid_argument);
  EXPECT_THROW(decode_fp4_weight(codes, Bytes(4), shape, weights), std::invalid_argument);
}

}  // namespace
}  // namespace cupel
