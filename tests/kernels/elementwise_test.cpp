#include "cupel/kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

using test::same_bits;

constexpr std::size_t kWidths[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

// H x / sqrt(width) from the matrix: H[i][j] = (-1)^popcount(i & j).
std::vector<double> by_matrix(const float* x, std::size_t width) {
  std::vector<double> y(width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j) y[i] += std::popcount(i & j) % 2 == 0 ? x[j] : -x[j];
    y[i] /= std::sqrt(static_cast<double>(width));
  }
  return y;
}

// log2(width) additions on any path, and the factor.
double bound(std::size_t width, double absolute_sum) {
  return (std::log2(static_cast<double>(width)) + 3) * 0x1p-24 * absolute_sum /
         std::sqrt(static_cast<double>(width));
}

TEST(Hadamard, EqualsTheMatrix) {
  test::Random random(41);
  ThreadPool pool(2);
  for (const std::size_t width : kWidths) {
    constexpr std::size_t kRows = 3;
    const std::vector<float> x = random.normals(kRows * width);
    std::vector<float> y = x;
    hadamard(pool, {.x = y.data(), .rows = kRows, .width = width});
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::vector<double> exact = by_matrix(x.data() + r * width, width);
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += std::fabs(x[r * width + i]);
      for (std::size_t i = 0; i < width; ++i) {
        ASSERT_NEAR(y[r * width + i], exact[i], bound(width, sum)) << width;
      }
    }
  }
}

// With a width that is a power of four, integers stay exact.
TEST(Hadamard, IsExactlyItsOwnInverseAndKeepsTheNorm) {
  test::Random random(42);
  ThreadPool pool(1);
  for (const std::size_t width : {4, 16, 64, 256}) {
    std::vector<float> x(width);
    for (float& v : x) v = static_cast<float>(random.below(2001)) - 1000;
    std::vector<float> y = x;
    hadamard(pool, {.x = y.data(), .rows = 1, .width = width});
    EXPECT_FALSE(same_bits(y, x));
    double before = 0, after = 0;
    for (std::size_t i = 0; i < width; ++i) {
      before += double{x[i]} * x[i];
      after += double{y[i]} * y[i];
    }
    EXPECT_EQ(before, after) << width;
    hadamard(pool, {.x = y.data(), .rows = 1, .width = width});
    EXPECT_TRUE(same_bits(y, x)) << width;
  }
}

TEST(Hadamard, RoundsTheResultOnceToBf16) {
  test::Random random(43);
  ThreadPool pool(1);
  std::vector<float> x = random.bf16_normals(128), y = x;
  hadamard(pool, {.x = x.data(), .rows = 1, .width = 128});
  for (float& v : x) v = round_bf16(v);
  hadamard(pool, {.x = y.data(), .rows = 1, .width = 128, .round_bf16 = true});
  EXPECT_TRUE(same_bits(y, x));
}

TEST(Scale, RoundsBeforeAndAfterOrNotAtAll) {
  // 1 + 2^-9 rounds to 1 before the product; 3 * (1 + 2^-7) rounds after it.
  const std::vector<float> in = {1 + 0x1p-9f, 1 + 0x1p-7f, -2.0f, 0.0f};
  std::vector<float> plain = in, rounded = in;
  ThreadPool pool(1);
  scale(pool, {.x = plain.data(), .count = plain.size(), .factor = 3});
  scale(pool, {.x = rounded.data(), .count = rounded.size(), .factor = 3, .round_bf16 = true});
  EXPECT_TRUE(same_bits(plain, std::vector<float>{3 + 3 * 0x1p-9f, 3 + 3 * 0x1p-7f, -6.0f, 0.0f}));
  EXPECT_TRUE(same_bits(rounded, std::vector<float>{3.0f, 3 + 4 * 0x1p-7f, -6.0f, 0.0f}));
}

}  // namespace
}  // namespace cupel
