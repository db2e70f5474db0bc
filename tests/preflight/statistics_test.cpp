#include "cupel/preflight/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/random.h"
#include <gtest/gtest.h>

#include "cupel/formats/error_measures.h"
#include "cupel/formats/quantise.h"

namespace cupel {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(SignalToNoise, OverPiecesIsOverAll) {
  test::Random random(3);
  std::vector<float> exact(6 * 64);
  for (float& x : exact) x = random.normal();
  std::vector<float> grid = exact;
  fake_quantise_e4m3(grid, 64);
  SignalToNoise error;
  EXPECT_TRUE(std::isnan(error.decibel()));
  for (std::size_t i = 0; i < exact.size(); i += 64) {
    error.add(std::span(exact).subspan(i, 64), std::span(grid).subspan(i, 64));
  }
  EXPECT_NEAR(error.decibel(), snr_db(grid, exact), 1e-9);
  // What is no number says nothing about the rest.
  const std::vector<float> broken = {kNan, 1};
  const std::vector<float> finite = {1, kNan};
  error.add(broken, finite);
  EXPECT_NEAR(error.decibel(), snr_db(grid, exact), 1e-9);
}

TEST(Sample, QuantilesAreElements) {
  Sample sample;
  EXPECT_TRUE(std::isnan(sample.quantile(0.5)));
  EXPECT_TRUE(std::isnan(sample.mean()));
  for (const int x : {5, 1, 4, 2, 3}) sample.add(x);
  EXPECT_EQ(sample.quantile(0), 1);
  EXPECT_EQ(sample.quantile(0.2), 1);
  EXPECT_EQ(sample.quantile(0.21), 2);
  EXPECT_EQ(sample.quantile(0.5), 3);
  EXPECT_EQ(sample.quantile(1), 5);
  EXPECT_EQ(sample.mean(), 3);
}

TEST(E4m3Range, CountsByTheScaledValue) {
  // amax 448 = the largest code under scale 1: 300 and 448 lie in [256, 448]; 2^-7 below 2^-6.
  E4m3Range range;
  range.add(std::vector<float>{448, -300, 255, 0x1p-6f, -0x1p-7f, 0, 1, 2}, 8);
  EXPECT_DOUBLE_EQ(range.top_binade(), 2.0 / 8);
  EXPECT_DOUBLE_EQ(range.below_normal(), 1.0 / 8);
  EXPECT_DOUBLE_EQ(range.over_448(), 0);
  EXPECT_DOUBLE_EQ(range.amax().quantile(1), 448);
  // 450 takes scale 2.
  range.add(std::vector<float>{450, 300, 0x1p-6f, 0, 0, 0, 0, 0}, 8);
  EXPECT_DOUBLE_EQ(range.top_binade(), 2.0 / 16);
  EXPECT_DOUBLE_EQ(range.below_normal(), 2.0 / 16);
  EXPECT_DOUBLE_EQ(range.over_448(), 0.5);
  range.add(std::vector<float>{kNan, 448, 448, 448}, 4);
  EXPECT_EQ(range.broken_groups(), 1U);
  EXPECT_DOUBLE_EQ(range.top_binade(), 2.0 / 16);
}

// The counts by the encoder's own codes.
TEST(E4m3Range, AgreesWithTheEncoder) {
  test::Random random(9);
  E4m3Range range;
  std::size_t top = 0;
  std::size_t small = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> group(64);
    for (float& x : group) x = std::ldexp(random.normal(), static_cast<int>(random.below(12)) - 6);
    std::vector<std::uint8_t> codes(64);
    std::vector<std::uint8_t> scale(1);
    encode_e4m3(group, 64, codes, scale);
    for (std::size_t i = 0; i < 64; ++i) {
      const float scaled = std::fabs(group[i]) / e8m0_to_float(scale[0]);
      // Rounding may carry a value over the edge: the range is that of the value.
      if ((codes[i] & 0x7f) >= 0x78 && scaled >= 256) ++top;
      if ((codes[i] & 0x7f) <= 8 && scaled < 0x1p-6f && scaled > 0) ++small;
    }
    range.add(group, 64);
  }
  EXPECT_DOUBLE_EQ(range.top_binade(), static_cast<double>(top) / (200 * 64));
  EXPECT_DOUBLE_EQ(range.below_normal(), static_cast<double>(small) / (200 * 64));
  EXPECT_GT(top, 0U);
  EXPECT_GT(small, 0U);
}

}  // namespace
}  // namespace cupel
