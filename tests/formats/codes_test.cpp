#include <cmath>
#include <limits>

#include "formats/double_rule.h"
#include <gtest/gtest.h>

#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"

namespace cupel {
namespace {

using test::all_bf16;
using test::e2m1_grid;
using test::e4m3_grid;
using test::same;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

TEST(E4m3, EveryCodeDecodesByTheRuleAndRoundTrips) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = e4m3_to_float(static_cast<std::uint8_t>(code));
    EXPECT_EQ(std::signbit(value), code >= 0x80) << code;
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, e4m3_grid().value(code)) << code;
    }
    EXPECT_EQ(e4m3_from_float(value), code);
    EXPECT_TRUE(same(round_e4m3(value), value)) << code;
  }
  EXPECT_EQ(e4m3_grid().max(), 448.0);
}

TEST(E4m3, EveryBf16ValueGoesToTheNearestCode) {
  for (const float value : all_bf16()) {
    if (std::isnan(value)) {
      ASSERT_EQ(e4m3_from_float(value), std::signbit(value) ? 0xff : 0x7f);
      continue;
    }
    const unsigned code = e4m3_grid().nearest(value);
    ASSERT_EQ(e4m3_from_float(value), code) << value;
    const auto expected = static_cast<float>(e4m3_grid().value(code));
    ASSERT_TRUE(same(round_e4m3(value), expected)) << value;
  }
}

TEST(E4m3, TiesGoToTheEvenCodeAndTheirNeighboursToTheNearerOne) {
  const auto& grid = e4m3_grid().magnitudes;
  for (unsigned code = 0; code + 1 < grid.size(); ++code) {
    const auto tie = static_cast<float>((grid[code] + grid[code + 1]) / 2);
    const unsigned even = code + code % 2;
    EXPECT_EQ(e4m3_from_float(tie), even);
    EXPECT_EQ(e4m3_from_float(-tie), even | 0x80u);
    EXPECT_EQ(e4m3_from_float(std::nextafter(tie, 0.0f)), code);
    EXPECT_EQ(e4m3_from_float(std::nextafter(tie, kInfinity)), code + 1);
  }
}

TEST(E4m3, SaturatesAbove448AndAtInfinity) {
  for (const float value : {448.0f, std::nextafter(448.0f, kInfinity), 464.0f, 480.0f, 1e38f,
                            std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(e4m3_from_float(value), 0x7e) << value;
    EXPECT_EQ(e4m3_from_float(-value), 0xfe) << value;
  }
}

TEST(E4m3, KeepsSignedZeros) {
  EXPECT_EQ(e4m3_from_float(0.0f), 0x00);
  EXPECT_EQ(e4m3_from_float(-0.0f), 0x80);
  EXPECT_TRUE(same(round_e4m3(-0.0f), -0.0f));
  EXPECT_TRUE(same(round_e4m3(-0x1p-11f), -0.0f));  // negative, rounds to zero
}

TEST(E4m3, Subnormals) {
  EXPECT_EQ(e4m3_from_float(0x1p-9f), 0x01);
  EXPECT_EQ(e4m3_from_float(0x1p-10f), 0x00);  // tie
  EXPECT_EQ(e4m3_from_float(std::nextafter(0x1p-10f, 1.0f)), 0x01);
  EXPECT_EQ(e4m3_from_float(0x1.ep-7f), 0x08);  // tie between the last subnormal and 2^-6
  EXPECT_EQ(e4m3_from_float(kSmallest), 0x00);  // subnormal float
  EXPECT_EQ(e4m3_from_float(-kSmallest), 0x80);
}

TEST(E4m3, NanKeepsItsSignWhateverItsPayload) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
    EXPECT_EQ(e4m3_from_float(std::bit_cast<float>(bits)), 0x7f);
    EXPECT_EQ(e4m3_from_float(std::bit_cast<float>(bits | 0x80000000u)), 0xff);
  }
}

TEST(E2m1, EveryCodeDecodesByTheTableAndRoundTrips) {
  for (unsigned code = 0; code < 16; ++code) {
    const float value = e2m1_to_float(static_cast<std::uint8_t>(code));
    EXPECT_TRUE(same(value, static_cast<float>(e2m1_grid().value(code)))) << code;
    EXPECT_EQ(e2m1_from_float(value), code);
    EXPECT_TRUE(same(round_e2m1(value), value)) << code;
  }
}

TEST(E2m1, EveryBf16ValueGoesToTheNearestCode) {
  for (const float value : all_bf16()) {
    const unsigned code = std::isnan(value) ? 7u : e2m1_grid().nearest(value);
    ASSERT_EQ(e2m1_from_float(value), code) << value;
    const auto expected = static_cast<float>(e2m1_grid().value(code));
    ASSERT_TRUE(same(round_e2m1(value), expected)) << value;
  }
}

TEST(E2m1, TiesGoToTheEvenCodeAndTheirNeighboursToTheNearerOne) {
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const float rounded[] = {0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 4.0f, 4.0f};  // model.md 3.8.3
  for (unsigned code = 0; code < 7; ++code) {
    EXPECT_EQ(round_e2m1(ties[code]), rounded[code]);
    EXPECT_EQ(round_e2m1(-ties[code]), -rounded[code]);
    EXPECT_EQ(e2m1_from_float(std::nextafter(ties[code], 0.0f)), code);
    EXPECT_EQ(e2m1_from_float(std::nextafter(ties[code], kInfinity)), code + 1);
  }
}

TEST(E2m1, SaturatesAboveSixAndAtInfinity) {
  for (const float value : {6.0f, std::nextafter(6.0f, kInfinity), 7.0f, 8.0f, 1e38f, kInfinity}) {
    EXPECT_EQ(e2m1_from_float(value), 0x7) << value;
    EXPECT_EQ(e2m1_from_float(-value), 0xf) << value;
  }
}

TEST(E2m1, KeepsSignedZerosAndFlushesSubnormalFloatsToThem) {
  EXPECT_EQ(e2m1_from_float(0.0f), 0x0);
  EXPECT_EQ(e2m1_from_float(-0.0f), 0x8);
  EXPECT_EQ(e2m1_from_float(kSmallest), 0x0);
  EXPECT_EQ(e2m1_from_float(-kSmallest), 0x8);
  EXPECT_EQ(e2m1_from_float(-0.25f), 0x8);
}

TEST(E2m1, NanGivesSixOfPositiveSign) {
  EXPECT_EQ(e2m1_from_float(kNan), 0x7);
  EXPECT_EQ(e2m1_from_float(-kNan), 0x7);
}

TEST(E2m1, LowNibbleIsTheEvenElement) {
  EXPECT_EQ(e2m1_pack(0x1, 0xf), 0xf1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto packed = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(e2m1_even(packed), byte % 16);
    EXPECT_EQ(e2m1_odd(packed), byte / 16);
    EXPECT_EQ(e2m1_pack(e2m1_even(packed), e2m1_odd(packed)), byte);
    EXPECT_TRUE(same(e2m1_to_float(packed), e2m1_to_float(e2m1_even(packed))));
  }
}

TEST(E8m0, EveryCodeDecodesByTheRuleAndRoundTrips) {
  for (unsigned code = 0; code < 255; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    EXPECT_EQ(e8m0_to_float(byte), std::ldexp(1.0, static_cast<int>(code) - 127)) << code;
    EXPECT_EQ(e8m0_from_float(e8m0_to_float(byte)), byte);
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

TEST(E8m0, OnlyPowersOfTwoInRangeHaveACode) {
  int with_code = 0;
  for (const float value : all_bf16()) {
    int exponent = 0;
    const bool power = std::isfinite(value) && std::frexp(value, &exponent) == 0.5f;
    const bool expected = power && exponent - 1 >= -127;
    ASSERT_EQ(e8m0_from_float(value).has_value(), expected) << value;
    with_code += expected ? 1 : 0;
  }
  EXPECT_EQ(with_code, 255);
  EXPECT_FALSE(e8m0_from_float(std::nextafter(1.0f, 2.0f)).has_value());
  EXPECT_FALSE(e8m0_from_float(kSmallest).has_value());
}

}  // namespace
}  // namespace cupel
