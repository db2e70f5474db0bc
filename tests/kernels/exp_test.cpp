#include "cupel/kernels/exp.h"

#include <algorithm>
#include <vector>

#include "kernels/vector_probe.h"
#include "support/isa_scope.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using exp_constants::kMax;
using exp_constants::kMin;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// |y - exact| in units of the last place of a float as large as `exact`.
double ulps(float y, double exact) {
  return std::fabs(y - exact) / std::ldexp(1.0, std::ilogb(exact) - 23);
}

// Bit patterns over the whole line in steps of a prime, and both neighbourhoods of each bound.
std::vector<float> sweep(std::uint32_t step) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += step) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float bound :
       {kMin, kMax, 0.0f, 0x1p-126f, 88.0f, -88.0f, 0.34657359f, -0.34657359f}) {
    float up = bound, down = bound;
    for (int i = 0; i < 100; ++i) {
      values.insert(values.end(), {up, down, -up, -down});
      up = std::nextafter(up, kInfinity);
      down = std::nextafter(down, -kInfinity);
    }
  }
  values.insert(values.end(), {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
  while (values.size() % 16 != 0) values.push_back(0);
  return values;
}

TEST(Exp, IsWithinTwoUlpOfExact) {
  double worst = 0;
  for (const float x : sweep(997)) {
    if (!(x >= kMin && x <= kMax)) continue;
    const double error = ulps(exp_f32(x), std::exp(static_cast<double>(x)));
    ASSERT_LE(error, 2) << x;
    worst = std::max(worst, error);
  }
  RecordProperty("largest_error_ulps", std::to_string(worst));
}

TEST(Exp, HasExactValuesAndBounds) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-kInfinity), 0.0f);
  EXPECT_EQ(exp_f32(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
  // The bounds are the last arguments with a normal, finite result.
  EXPECT_GE(exp_f32(kMin), std::numeric_limits<float>::min());
  EXPECT_LT(std::exp(static_cast<double>(std::nextafter(kMin, -kInfinity))), 0x1p-126);
  EXPECT_EQ(exp_f32(std::nextafter(kMin, -kInfinity)), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_f32(kMax)));
  EXPECT_EQ(exp_f32(std::nextafter(kMax, kInfinity)), kInfinity);
  // Results that would be subnormal are zero.
  for (const float x : {-87.4f, -95.0f, -103.0f, -104.0f}) EXPECT_EQ(exp_f32(x), 0.0f);
}

TEST(Exp, VectorEqualsScalarBitForBit) {
  const std::vector<float> in = sweep(8191);
  std::vector<float> expected(in.size()), out(in.size());
  std::ranges::transform(in, expected.begin(), exp_f32);
  for (const Isa isa : test::available_isas()) {
    const test::IsaScope scope(isa);
    test::vector_exp(in.data(), out.data(), in.size());
    EXPECT_TRUE(test::same_bits(out, expected)) << active_isa();
  }
}

TEST(Exp, SigmoidSaturatesAndIsSymmetric) {
  EXPECT_EQ(sigmoid_f32(0.0f), 0.5f);
  EXPECT_EQ(sigmoid_f32(100.0f), 1.0f);
  EXPECT_EQ(sigmoid_f32(-100.0f), 0.0f);
  for (float x = -80; x < 80; x += 0.37f) {
    EXPECT_LE(ulps(sigmoid_f32(x), 1 / (1 + std::exp(-static_cast<double>(x)))), 4) << x;
  }
}

}  // namespace
}  // namespace cupel
