#include "cupel/kernels/norm.h"

#include <cmath>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

using test::same_bits;

constexpr float kEps = 1e-6f;
constexpr std::size_t kWidths[] = {1, 15, 16, 17, 64, 128, 200, 512, 1000};

double mean_square(const float* x, std::size_t width) {
  double sum = 0;
  for (std::size_t i = 0; i < width; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum / static_cast<double>(width);
}

TEST(SumOfSquares, UsesTheDocumentedTree) {
  test::Random random(31);
  for (const std::size_t width : kWidths) {
    const std::vector<float> x = random.normals(width);
    float lane[16] = {};
    for (std::size_t i = 0; i < width; ++i) lane[i % 16] += x[i] * x[i];
    for (const std::size_t half : {8, 4, 2, 1}) {
      for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    }
    EXPECT_EQ(sum_of_squares(x.data(), width), lane[0]) << width;
  }
}

// The sum has width / 16 + 5 roundings, which the root halves; six more follow.
double norm_bound(std::size_t width) {
  return (static_cast<double>(width / 16 + 5) / 2 + 6) * 0x1p-24;
}

TEST(RmsNorm, IsCloseToDouble) {
  test::Random random(32);
  ThreadPool pool(2);
  for (const std::size_t width : kWidths) {
    for (const double sigma : {1e-4, 1.0, 1e6}) {
      constexpr std::size_t kRows = 33;
      const std::vector<float> x = random.normals(kRows * width, sigma);
      const std::vector<float> weight = random.bf16_normals(width);
      std::vector<float> out(x.size());
      rms_norm(pool, {.in = x.data(),
                      .weight = weight.data(),
                      .out = out.data(),
                      .rows = kRows,
                      .width = width,
                      .eps = kEps,
                      .numerics = Numerics::kFloat32});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double mean = mean_square(x.data() + i / width * width, width);
        const double exact = weight[i % width] * (x[i] / std::sqrt(mean + kEps));
        ASSERT_NEAR(out[i], exact, norm_bound(width) * std::fabs(exact)) << width;
      }
    }
  }
}

TEST(RmsNorm, RoundsOnceAtTheEndAndWorksInPlace) {
  test::Random random(33);
  ThreadPool pool(1);
  constexpr std::size_t kRows = 5, kWidth = 200;
  std::vector<float> x = random.bf16_normals(kRows * kWidth);
  const std::vector<float> weight = random.bf16_normals(kWidth);
  std::vector<float> plain(x.size());
  RmsNormParams params{.in = x.data(),
                       .weight = weight.data(),
                       .out = plain.data(),
                       .rows = kRows,
                       .width = kWidth,
                       .eps = kEps,
                       .numerics = Numerics::kFloat32};
  rms_norm(pool, params);
  for (float& v : plain) v = round_bf16(v);
  params.numerics = Numerics::kReference;
  params.out = x.data();
  rms_norm(pool, params);
  EXPECT_TRUE(same_bits(x, plain));
}

TEST(HeadNorm, IsCloseToDouble) {
  test::Random random(34);
  ThreadPool pool(2);
  for (const std::size_t width : kWidths) {
    constexpr std::size_t kRows = 70;
    const std::vector<float> x = random.normals(kRows * width, 3);
    std::vector<float> out = x;
    head_norm(pool, {.x = out.data(),
                     .rows = kRows,
                     .width = width,
                     .eps = kEps,
                     .numerics = Numerics::kFloat32});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double mean = mean_square(x.data() + i / width * width, width);
      const double exact = x[i] / std::sqrt(mean + kEps);
      ASSERT_NEAR(out[i], exact, norm_bound(width) * std::fabs(exact)) << width;
    }
  }
}

float b(double value) {
  return round_bf16(static_cast<float>(value));
}

// On integers every sum is exact, so the rounding points of spec 3.5.3 alone decide the bits.
TEST(HeadNorm, HasTheRoundingPointsOfTheReference) {
  test::Random random(35);
  ThreadPool pool(1);
  bool square_rounds = false;
  for (int round = 0; round < 50; ++round) {
    for (const std::size_t width : {16, 64, 512}) {
      std::vector<float> x(width), expected(width);
      for (float& v : x) v = static_cast<float>(random.below(63)) - 31;
      double sum = 0;
      for (const float v : x) {
        sum += b(v * v);
        square_rounds |= b(v * v) != v * v;
      }
      const float mean = b(sum / static_cast<double>(width));
      const float scale = b(1 / std::sqrt(static_cast<double>(b(mean + double{kEps}))));
      for (std::size_t i = 0; i < width; ++i) expected[i] = b(double{x[i]} * scale);
      head_norm(pool, {.x = x.data(), .rows = 1, .width = width, .eps = kEps});
      ASSERT_TRUE(same_bits(x, expected)) << width;
    }
  }
  EXPECT_TRUE(square_rounds);
}

TEST(Norm, RowsDoNotDependOnTheirCompany) {
  test::Random random(36);
  constexpr std::size_t kRows = 100, kWidth = 64;
  const std::vector<float> x = random.bf16_normals(kRows * kWidth);
  const std::vector<float> weight = random.bf16_normals(kWidth);
  ThreadPool pool(3);
  std::vector<float> together(x.size()), heads = x;
  rms_norm(pool, {.in = x.data(),
                  .weight = weight.data(),
                  .out = together.data(),
                  .rows = kRows,
                  .width = kWidth,
                  .eps = kEps});
  head_norm(pool, {.x = heads.data(), .rows = kRows, .width = kWidth, .eps = kEps});
  for (std::size_t r = 0; r < kRows; ++r) {
    std::vector<float> alone(kWidth), head(x.data() + r * kWidth, x.data() + (r + 1) * kWidth);
    rms_norm(pool, {.in = x.data() + r * kWidth,
                    .weight = weight.data(),
                    .out = alone.data(),
                    .rows = 1,
                    .width = kWidth,
                    .eps = kEps});
    head_norm(pool, {.x = head.data(), .rows = 1, .width = kWidth, .eps = kEps});
    EXPECT_TRUE(same_bits(alone, std::span(together).subspan(r * kWidth, kWidth)));
    EXPECT_TRUE(same_bits(head, std::span(heads).subspan(r * kWidth, kWidth)));
  }
}

}  // namespace
}  // namespace cupel
