#include "cupel/formats/bf16.h"

#include <cmath>
#include <limits>

#include "formats/double_rule.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::same;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Magnitude of a bf16 code by the definition, with the first value past the range for the code of
// infinity: overflow rounds as if the format went on (IEEE 754).
double magnitude(unsigned code) {
  const int exponent = static_cast<int>(code >> 7);
  const double fraction = (code & 0x7fu) / 128.0;
  return exponent == 0 ? std::ldexp(fraction, -126) : std::ldexp(1.0 + fraction, exponent - 127);
}

TEST(Bf16, EveryCodeDecodesByTheRuleAndRoundTrips) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float value = bf16_to_float(bits);
    const unsigned rest = code & 0x7fffu;
    ASSERT_EQ(std::signbit(value), code >= 0x8000u);
    if (rest > 0x7f80u) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(bf16_from_float(value), code | 0x40u);  // quiet
      continue;
    }
    if (rest == 0x7f80u) {
      ASSERT_TRUE(std::isinf(value));
    } else {
      ASSERT_EQ(std::fabs(static_cast<double>(value)), magnitude(rest));
    }
    ASSERT_EQ(bf16_from_float(value), code);
  }
}

// Between any two neighbours, the midpoint goes to the even one and the floats beside it to the
// nearer one.
TEST(Bf16, MidpointsGoToEven) {
  for (unsigned code = 0; code < 0x7f80u; ++code) {
    const double middle = (magnitude(code) + magnitude(code + 1)) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    const unsigned even = code + code % 2;
    ASSERT_EQ(bf16_from_float(tie), even);
    ASSERT_EQ(bf16_from_float(-tie), even | 0x8000u);
    ASSERT_EQ(bf16_from_float(std::nextafter(tie, 0.0f)), code);
    ASSERT_EQ(bf16_from_float(std::nextafter(tie, kInfinity)), code + 1);
  }
}

TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(round_bf16(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(round_bf16(-std::numeric_limits<float>::max()), -kInfinity);
  EXPECT_EQ(round_bf16(kInfinity), kInfinity);
  EXPECT_EQ(round_bf16(-kInfinity), -kInfinity);
}

TEST(Bf16, KeepsSignedZeros) {
  EXPECT_TRUE(same(round_bf16(-0.0f), -0.0f));
  EXPECT_TRUE(same(round_bf16(0.0f), 0.0f));
  EXPECT_TRUE(same(round_bf16(-std::numeric_limits<float>::denorm_min()), -0.0f));
}

// A NaN whose payload lies in the dropped half must not turn into infinity.
TEST(Bf16, KeepsNanAndItsSign) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0x7fc00000u}) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const float rounded = round_bf16(std::bit_cast<float>(bits | sign));
      EXPECT_TRUE(std::isnan(rounded));
      EXPECT_EQ(std::signbit(rounded), sign != 0);
    }
  }
}

}  // namespace
}  // namespace cupel
