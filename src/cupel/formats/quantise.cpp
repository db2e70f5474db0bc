#include "cupel/formats/quantise.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace cupel {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kOneOver448 = 0x1.24924ap-9f;  // the float constants of 3.3 and 3.8.3
constexpr float kOneOver6 = 0x1.555556p-3f;

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// ceil(log2(x)) for a positive normal x; kNanScaleExponent for NaN and infinity.
int ceil_log2(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const int exponent = static_cast<int>((bits >> 23) & 0xffu) - 127 + ((bits & 0x7fffffu) != 0);
  return std::min(exponent, kNanScaleExponent);
}

// NaN compares false and passes through.
float at_least(float amax, float floor) {
  return amax < floor ? floor : amax;
}

// 2^exponent, within the range of the scale exponents and of their negatives (all normal).
float power_of_two(int exponent) {
  return e8m0_to_float(e8m0_from_exponent(exponent));
}

void check_groups(std::size_t elements, std::size_t group, std::size_t scales) {
  require(group > 0 && elements % group == 0, "elements not a multiple of the group");
  require(scales == elements / group, "one scale a group expected");
}

}  // namespace

float magnitude_max(std::span<const float> values) {
  // As bit patterns without sign, floats order as integers, with NaN above infinity.
  std::uint32_t amax = 0;
  for (const float value : values) {
    amax = std::max(amax, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  }
  return std::bit_cast<float>(amax);
}

int e4m3_scale_exponent(float amax) {
  return ceil_log2(at_least(amax, kE4m3AmaxFloor) * kOneOver448);
}

int e2m1_scale_exponent(float amax) {
  return ceil_log2(at_least(amax, kE2m1AmaxFloor) * kOneOver6);
}

void encode_e4m3(std::span<const float> values, std::size_t group, std::span<std::uint8_t> codes,
                 std::span<std::uint8_t> scales) {
  check_groups(values.size(), group, scales.size());
  require(codes.size() == values.size(), "one code an element expected");
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const auto in = values.subspan(g * group, group);
    const auto out = codes.subspan(g * group, group);
    const int exponent = e4m3_scale_exponent(magnitude_max(in));
    scales[g] = e8m0_from_exponent(exponent);
    if (exponent == kNanScaleExponent) {
      std::ranges::fill(out, kE4m3Nan);
      continue;
    }
    const float inverse = power_of_two(-exponent);
    for (std::size_t i = 0; i < group; ++i) out[i] = e4m3_from_float(in[i] * inverse);
  }
}

void decode_e4m3(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                 std::size_t group, std::span<float> values) {
  check_groups(values.size(), group, scales.size());
  require(codes.size() == values.size(), "one code an element expected");
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const float scale = e8m0_to_float(scales[g]);
    for (std::size_t i = g * group; i < (g + 1) * group; ++i) {
      values[i] = e4m3_to_float(codes[i]) * scale;
    }
  }
}

void fake_quantise_e4m3(std::span<float> values, std::size_t group) {
  check_groups(values.size(), group, group > 0 ? values.size() / group : 0);
  for (std::size_t begin = 0; begin < values.size(); begin += group) {
    const auto out = values.subspan(begin, group);
    const int exponent = e4m3_scale_exponent(magnitude_max(out));
    if (exponent == kNanScaleExponent) {
      std::ranges::fill(out, kNan);
      continue;
    }
    const float scale = power_of_two(exponent);
    const float inverse = power_of_two(-exponent);
    for (float& value : out) value = round_e4m3(value * inverse) * scale;
  }
}

void encode_e2m1(std::span<const float> values, std::size_t group, std::span<std::uint8_t> packed,
                 std::span<std::uint8_t> scales) {
  check_groups(values.size(), group, scales.size());
  require(group % 2 == 0, "an even group expected");
  require(packed.size() == values.size() / 2, "one byte for two elements expected");
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const auto in = values.subspan(g * group, group);
    const auto out = packed.subspan(g * group / 2, group / 2);
    const int exponent = e2m1_scale_exponent(magnitude_max(in));
    scales[g] = e8m0_from_exponent(exponent);
    if (exponent == kNanScaleExponent) {
      std::ranges::fill(out, std::uint8_t{0});
      continue;
    }
    const float inverse = power_of_two(-exponent);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] =
          e2m1_pack(e2m1_from_float(in[2 * i] * inverse), e2m1_from_float(in[2 * i + 1] * inverse));
    }
  }
}

void decode_e2m1(std::span<const std::uint8_t> packed, std::span<const std::uint8_t> scales,
                 std::size_t group, std::span<float> values) {
  check_groups(values.size(), group, scales.size());
  require(group % 2 == 0, "an even group expected");
  require(packed.size() == values.size() / 2, "one byte for two elements expected");
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const float scale = e8m0_to_float(scales[g]);
    for (std::size_t i = g * group / 2; i < (g + 1) * group / 2; ++i) {
      values[2 * i] = e2m1_to_float(e2m1_even(packed[i])) * scale;
      values[2 * i + 1] = e2m1_to_float(e2m1_odd(packed[i])) * scale;
    }
  }
}

void fake_quantise_e2m1(std::span<float> values, std::size_t group) {
  check_groups(values.size(), group, group > 0 ? values.size() / group : 0);
  for (std::size_t begin = 0; begin < values.size(); begin += group) {
    const auto out = values.subspan(begin, group);
    const int exponent = e2m1_scale_exponent(magnitude_max(out));
    if (exponent == kNanScaleExponent) {
      std::ranges::fill(out, kNan);
      continue;
    }
    const float scale = power_of_two(exponent);
    const float inverse = power_of_two(-exponent);
    for (float& value : out) value = round_e2m1(value * inverse) * scale;
  }
}

float encode_index_key(std::span<const float> row, std::span<std::uint8_t> codes) {
  require(row.size() == kIndexKeyWidth && codes.size() == kIndexKeyWidth, "a row of 128 expected");
  const float amax = magnitude_max(row);
  const float scale = at_least(amax, kE4m3AmaxFloor) / kE4m3Max;
  // The largest finite amax divides to a finite scale, so this is exactly "amax is not finite".
  const bool poisoned = !(scale <= std::numeric_limits<float>::max());
  for (std::size_t i = 0; i < row.size(); ++i) {
    codes[i] = poisoned ? kE4m3Nan : e4m3_from_float(row[i] / scale);
  }
  return scale;
}

void decode_index_key(std::span<const std::uint8_t> codes, float scale, std::span<float> row) {
  require(row.size() == kIndexKeyWidth && codes.size() == kIndexKeyWidth, "a row of 128 expected");
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = e4m3_to_float(codes[i]) * scale;
}

void fake_quantise_index_key(std::span<float> row) {
  std::uint8_t codes[kIndexKeyWidth];
  const float scale = encode_index_key(row, codes);
  decode_index_key(codes, scale, row);
}

}  // namespace cupel
