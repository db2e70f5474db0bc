#include "cupel/formats/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "formats/double_rule.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cupel {
namespace {

using test::all_bf16;
using test::e2m1_grid;
using test::e4m3_grid;
using test::same;

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A quantiser with power-of-two scales under test, beside its description in double.
struct Quantiser {
  std::string name;
  std::size_t group;
  bool fp4;
  double floor;

  const test::Grid& grid() const { return fp4 ? e2m1_grid() : e4m3_grid(); }

  // One code an element, unpacked, and one scale byte a group.
  void encode(const Floats& values, Bytes& codes, Bytes& scales) const {
    codes.assign(values.size(), 0xee);
    scales.assign(values.size() / group, 0xee);
    if (!fp4) return encode_e4m3(values, group, codes, scales);
    Bytes packed(values.size() / 2);
    encode_e2m1(values, group, packed, scales);
    for (std::size_t i = 0; i < values.size(); ++i) {
      codes[i] = i % 2 == 0 ? e2m1_even(packed[i / 2]) : e2m1_odd(packed[i / 2]);
    }
  }

  Floats decode(const Bytes& codes, const Bytes& scales) const {
    Floats values(codes.size());
    if (!fp4) {
      decode_e4m3(codes, scales, group, values);
      return values;
    }
    Bytes packed(codes.size() / 2);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      packed[i] = e2m1_pack(codes[2 * i], codes[2 * i + 1]);
    }
    decode_e2m1(packed, scales, group, values);
    return values;
  }

  Floats fake(Floats values) const {
    if (group == kActivationGroup) fake_quantise_activation(values);
    if (group == kKvGroup) fake_quantise_kv(values);
    if (group == kIndexerGroup) fake_quantise_indexer(values);
    return values;
  }
};

void PrintTo(const Quantiser& quantiser, std::ostream* out) {
  *out << quantiser.name;
}

std::string why(const Quantiser& quantiser, float value, float amax) {
  return quantiser.name + ": " + std::to_string(value) + " with amax " + std::to_string(amax);
}

// Holds codes, scales, decoded and fake-quantised values of whole groups against the rule in
// double.
void check(const Quantiser& quantiser, const Floats& values) {
  Bytes codes;
  Bytes scales;
  quantiser.encode(values, codes, scales);
  const Floats decoded = quantiser.decode(codes, scales);
  const Floats faked = quantiser.fake(values);
  const test::Grid& grid = quantiser.grid();
  for (std::size_t g = 0; g < scales.size(); ++g) {
    double amax = 0;
    bool finite = true;
    for (std::size_t i = g * quantiser.group; i < (g + 1) * quantiser.group; ++i) {
      finite = finite && std::isfinite(values[i]);
      amax = std::fmax(amax, std::fabs(static_cast<double>(values[i])));
    }
    const int exponent = finite ? test::smallest_exponent(amax, grid.max(), quantiser.floor) : 128;
    ASSERT_EQ(scales[g], exponent + 127) << quantiser.name << " amax " << amax;
    for (std::size_t i = g * quantiser.group; i < (g + 1) * quantiser.group; ++i) {
      unsigned code = quantiser.fp4 ? 0u : 0x7fu;
      float expected = kNan;
      if (finite) {
        code = grid.nearest(std::ldexp(static_cast<double>(values[i]), -exponent));
        expected = test::to_float(std::ldexp(grid.value(code), exponent));
        ASSERT_TRUE(same(expected, round_bf16(expected)));  // exact in bf16
      }
      ASSERT_EQ(codes[i], code) << why(quantiser, values[i], static_cast<float>(amax));
      ASSERT_TRUE(same(decoded[i], expected))
          << why(quantiser, values[i], static_cast<float>(amax));
      ASSERT_TRUE(same(faked[i], expected)) << why(quantiser, values[i], static_cast<float>(amax));
    }
  }
}

class PowerOfTwoScales : public testing::TestWithParam<Quantiser> {};

INSTANTIATE_TEST_SUITE_P(Formats, PowerOfTwoScales,
                         testing::Values(Quantiser{"activation", kActivationGroup, false, 1e-4f},
                                         Quantiser{"kv", kKvGroup, false, 1e-4f},
                                         Quantiser{"indexer", kIndexerGroup, true,
                                                   std::ldexp(6.0, -126)}),
                         [](const auto& info) { return info.param.name; });

// Each bf16 value is the amax of its own group, beside its negative, its half and values that cross
// the midpoints below it. NaN and infinity are among them.
TEST_P(PowerOfTwoScales, EveryBf16ValueAsAmax) {
  Floats values;
  for (const float value : all_bf16()) {
    for (std::size_t i = 0; i < GetParam().group; ++i) {
      const auto share = static_cast<float>(i) / static_cast<float>(GetParam().group - 1);
      const float element = round_bf16(value * share);
      values.push_back(i % 2 == 0 ? -element : element);
    }
  }
  check(GetParam(), values);
}

// Every finite bf16 value as an element under the amax of another: the ends of the range of scales,
// both sides of the floors, of 448 and of 6, and values between.
TEST_P(PowerOfTwoScales, EveryBf16ValueUnderOtherScales) {
  for (const float wanted :
       {0x1p-133f, 0x1p-126f, 0x1.8p-124f, 0x1.82p-124f, 1e-20f,     0.9e-4f,    1e-4f,
        1.1e-4f,   0.027f,    1.0f,        6.0f,         6.03125f,   7.5f,       224.0f,
        225.0f,    448.0f,    450.0f,      1e10f,        0x1.bp127f, 0x1.dp127f, 0x1.fep127f}) {
    const float amax = round_bf16(wanted);
    Floats values;
    for (const float value : all_bf16()) {
      if (values.size() % GetParam().group == 0) values.push_back(amax);
      if (std::fabs(value) <= amax) values.push_back(value);
    }
    values.resize(values.size() / GetParam().group * GetParam().group + GetParam().group, amax);
    check(GetParam(), values);
  }
}

TEST_P(PowerOfTwoScales, NanAndInfinityPoisonTheirGroupOnly) {
  const std::size_t group = GetParam().group;
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const std::size_t place : {group, group + 1, 2 * group - 1}) {
      Floats values(3 * group, 1.0f);
      values[place] = bad;
      Bytes codes;
      Bytes scales;
      GetParam().encode(values, codes, scales);
      EXPECT_NE(scales[0], kE8m0Nan);
      EXPECT_EQ(scales[1], kE8m0Nan);
      EXPECT_NE(scales[2], kE8m0Nan);
      const Floats faked = GetParam().fake(values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::isnan(faked[i]), i / group == 1) << i;
      }
    }
  }
}

TEST_P(PowerOfTwoScales, KeepsSignedZeros) {
  for (const float amax : {0.0f, 1.0f}) {
    Floats values(GetParam().group, amax);
    values[0] = -0.0f;
    values[1] = 0.0f;
    values[2] = -amax * 0x1p-20f;  // rounds to zero
    const Floats faked = GetParam().fake(values);
    EXPECT_TRUE(same(faked[0], -0.0f));
    EXPECT_TRUE(same(faked[1], 0.0f));
    EXPECT_TRUE(same(faked[2], -0.0f));
  }
}

TEST_P(PowerOfTwoScales, TopOfTheRangeOverflowsToInfinity) {
  const float below = GetParam().fp4 ? 0x1.bep127f : 0x1.eep127f;  // the bf16 below the midpoint
  const float above = GetParam().fp4 ? 0x1.cp127f : 0x1.fp127f;
  for (const float sign : {1.0f, -1.0f}) {
    Floats values(GetParam().group, 0.0f);
    values[0] = sign * above;
    values[1] = sign * below;
    const Floats faked = GetParam().fake(values);
    EXPECT_EQ(faked[0], sign * kInfinity);
    EXPECT_EQ(faked[1], sign * (GetParam().fp4 ? 0x1.8p127f : 0x1.ep127f));
  }
}

TEST_P(PowerOfTwoScales, RefusesLengthsThatDoNotMatch) {
  const std::size_t group = GetParam().group;
  Floats values(group);
  Floats longer(group + 1);
  Bytes codes(group);
  Bytes shorter(group - 1);
  Bytes one(1);
  Bytes two(2);
  EXPECT_THROW(encode_e4m3(longer, group, codes, one), std::invalid_argument);
  EXPECT_THROW(encode_e4m3(values, group, shorter, one), std::invalid_argument);
  EXPECT_THROW(encode_e4m3(values, group, codes, two), std::invalid_argument);
  EXPECT_THROW(encode_e4m3(values, 0, codes, one), std::invalid_argument);
  EXPECT_THROW(decode_e4m3(codes, two, group, values), std::invalid_argument);
  EXPECT_THROW(encode_e2m1(values, group, codes, one), std::invalid_argument);
  EXPECT_THROW(encode_e2m1(Floats(3), 3, one, one), std::invalid_argument);
  EXPECT_THROW(decode_e2m1(codes, one, group, values), std::invalid_argument);
  EXPECT_THROW(GetParam().fake(longer), std::invalid_argument);
}

TEST(ScaleExponent, IsTheSmallestForEveryBf16Amax) {
  for (const float amax : all_bf16()) {
    if (std::signbit(amax)) continue;
    const bool finite = std::isfinite(amax);
    ASSERT_EQ(e4m3_scale_exponent(amax),
              finite ? test::smallest_exponent(amax, 448, 1e-4f) : kNanScaleExponent)
        << amax;
    ASSERT_EQ(e2m1_scale_exponent(amax),
              finite ? test::smallest_exponent(amax, 6, std::ldexp(6.0, -126)) : kNanScaleExponent)
        << amax;
  }
  EXPECT_EQ(e4m3_scale_exponent(0.0f), -22);
  EXPECT_EQ(e2m1_scale_exponent(0.0f), -126);
  EXPECT_EQ(e4m3_scale_exponent(std::numeric_limits<float>::max()), 120);
  EXPECT_EQ(e2m1_scale_exponent(std::numeric_limits<float>::max()), 126);
}

// With more bits than bf16 has, the rule is the rounded float product, not the exact quotient. The
// product of two floats is exact in double.
TEST(ScaleExponent, FollowsTheFloatProductBesideTheBounds) {
  for (int power = -20; power <= 20; ++power) {
    for (int step = -8; step <= 8; ++step) {
      for (const auto& [limit, reciprocal, rule] :
           {std::tuple{448.0, 0x1.24924ap-9, &e4m3_scale_exponent},
            std::tuple{6.0, 0x1.555556p-3, &e2m1_scale_exponent}}) {
        const auto bound = static_cast<float>(std::ldexp(limit, power));
        const auto amax = std::bit_cast<float>(std::bit_cast<int>(bound) + step);
        const auto product = static_cast<float>(amax * reciprocal);
        int exponent = 0;
        if (std::frexp(product, &exponent) == 0.5f) --exponent;
        ASSERT_EQ(rule(amax), exponent) << limit << " * 2^" << power << " and " << step << " ulp";
      }
    }
  }
}

TEST(MagnitudeMax, PropagatesNanFromAnyPlace) {
  EXPECT_EQ(magnitude_max({}), 0.0f);
  EXPECT_EQ(magnitude_max(Floats{1.0f, -3.0f, 2.0f}), 3.0f);
  EXPECT_EQ(magnitude_max(Floats{1.0f, -kInfinity}), kInfinity);
  EXPECT_TRUE(std::isnan(magnitude_max(Floats{kNan, 1.0f})));
  EXPECT_TRUE(std::isnan(magnitude_max(Floats{kInfinity, -kNan, 1.0f})));
}

// Index key rows against the rule in double. A quotient of two floats rounded to double and then to
// float is the float quotient.
void check_index_key(const Floats& row) {
  double amax = 1e-4f;
  bool finite = true;
  for (const float value : row) {
    finite = finite && std::isfinite(value);
    amax = std::fmax(amax, std::fabs(static_cast<double>(value)));
  }
  Bytes codes(row.size());
  const float scale = encode_index_key(row, codes);
  const auto expected_scale = static_cast<float>(amax / 448.0);
  if (finite) {
    ASSERT_EQ(scale, expected_scale) << amax;
  } else {
    ASSERT_FALSE(std::isfinite(scale));
  }
  Floats decoded(row.size());
  decode_index_key(codes, scale, decoded);
  Floats faked = row;
  fake_quantise_index_key(faked);
  for (std::size_t i = 0; i < row.size(); ++i) {
    unsigned code = 0x7f;
    float expected = kNan;
    if (finite) {
      const auto quotient = static_cast<float>(static_cast<double>(row[i]) / expected_scale);
      code = e4m3_grid().nearest(quotient);
      expected = test::to_float(e4m3_grid().value(code) * expected_scale);
    }
    ASSERT_EQ(codes[i], code) << row[i] << " amax " << amax;
    ASSERT_TRUE(same(decoded[i], expected)) << row[i] << " amax " << amax;
    ASSERT_TRUE(same(faked[i], expected)) << row[i] << " amax " << amax;
  }
}

TEST(IndexKey, EveryBf16ValueAsAmax) {
  for (const float value : all_bf16()) {
    Floats row;
    for (std::size_t i = 0; i < kIndexKeyWidth; ++i) {
      const float element = round_bf16(value * (static_cast<float>(i) / 127.0f));
      row.push_back(i % 2 == 0 ? -element : element);
    }
    check_index_key(row);
    if (HasFatalFailure()) return;
  }
}

TEST(IndexKey, EveryBf16ValueUnderOtherScales) {
  for (const float amax : {0x1p-133f, 0x1.a4p-14f, 1.0f, 3.140625f, 448.0f, 0x1.fep127f}) {
    Floats row;
    for (const float value : all_bf16()) {
      if (!(std::fabs(value) <= amax)) continue;
      row.push_back(value);
      if (row.size() < kIndexKeyWidth - 1) continue;
      row.push_back(-amax);
      check_index_key(row);
      if (HasFatalFailure()) return;
      row.clear();
    }
  }
}

TEST(IndexKey, RefusesOtherWidths) {
  Floats row(kIndexKeyWidth);
  Floats narrow(kIndexKeyWidth / 2);
  Floats wide(2 * kIndexKeyWidth);
  Bytes codes(kIndexKeyWidth);
  Bytes few(kIndexKeyWidth / 2);
  EXPECT_THROW(encode_index_key(narrow, codes), std::invalid_argument);
  EXPECT_THROW(encode_index_key(row, few), std::invalid_argument);
  EXPECT_THROW(decode_index_key(codes, 1.0f, narrow), std::invalid_argument);
  EXPECT_THROW(fake_quantise_index_key(wide), std::invalid_argument);
}

// Any bf16 values, drawn by bits: all exponents alike, special values now and then.
rc::Gen<Floats> any_values(std::size_t count) {
  return rc::gen::map(
      rc::gen::container<std::vector<std::uint16_t>>(count, rc::gen::arbitrary<std::uint16_t>()),
      [](const std::vector<std::uint16_t>& bits) {
        Floats values;
        for (const std::uint16_t b : bits) values.push_back(bf16_to_float(b));
        return values;
      });
}

// Finite values of one magnitude, as real activations are.
rc::Gen<Floats> plain_values(std::size_t count) {
  return rc::gen::map(
      rc::gen::pair(rc::gen::container<std::vector<int>>(count, rc::gen::inRange(-4096, 4097)),
                    rc::gen::inRange(-40, 41)),
      [](const std::pair<std::vector<int>, int>& drawn) {
        Floats values;
        for (const int v : drawn.first) {
          values.push_back(round_bf16(std::ldexp(static_cast<float>(v), drawn.second)));
        }
        return values;
      });
}

bool all_same(const Floats& a, const Floats& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return same(x, y); });
}

const Quantiser kQuantisers[] = {{"activation", kActivationGroup, false, 1e-4f},
                                 {"kv", kKvGroup, false, 1e-4f},
                                 {"indexer", kIndexerGroup, true, std::ldexp(6.0, -126)}};

RC_GTEST_PROP(QuantiserProperty, DecodedCodesAreTheFakeQuantisedValues, ()) {
  for (const Quantiser& quantiser : kQuantisers) {
    const auto values =
        *rc::gen::oneOf(any_values(2 * quantiser.group), plain_values(2 * quantiser.group));
    Bytes codes;
    Bytes scales;
    quantiser.encode(values, codes, scales);
    RC_ASSERT(all_same(quantiser.decode(codes, scales), quantiser.fake(values)));
  }
}

// The amax may round down to half the range, and the scale with it, but the values stay.
RC_GTEST_PROP(QuantiserProperty, FakeQuantisingTwiceIsFakeQuantisingOnce, ()) {
  for (const Quantiser& quantiser : kQuantisers) {
    const auto once = quantiser.fake(*plain_values(2 * quantiser.group));
    RC_ASSERT(all_same(quantiser.fake(once), once));
  }
}

// Above the floor, a power of two passes through: the codes do not change.
RC_GTEST_PROP(QuantiserProperty, PowersOfTwoPassThrough, (bool up)) {
  for (const Quantiser& quantiser : kQuantisers) {
    auto values = *plain_values(quantiser.group);
    values[0] = 1e4f;
    Bytes codes;
    Bytes scaled_codes;
    Bytes scales;
    Bytes scaled_scales;
    quantiser.encode(values, codes, scales);
    for (float& value : values) value *= up ? 8.0f : 0.125f;
    quantiser.encode(values, scaled_codes, scaled_scales);
    RC_ASSERT(codes == scaled_codes);
    RC_ASSERT(scaled_scales[0] - scales[0] == (up ? 3 : -3));
  }
}

// The scale of a row may move by an ulp when it is quantised again, its codes may not.
RC_GTEST_PROP(QuantiserProperty, IndexKeyCodesSurviveRequantisation, ()) {
  auto row = *plain_values(kIndexKeyWidth);
  Bytes first(kIndexKeyWidth);
  Bytes second(kIndexKeyWidth);
  const float scale = encode_index_key(row, first);
  decode_index_key(first, scale, row);
  encode_index_key(row, second);
  RC_ASSERT(first == second);
}

}  // namespace
}  // namespace cupel
