// float8 e4m3fn (spec/model.md 2.5): sign, 4 exponent bits (bias 7), 3 mantissa bits. No infinity;
// 0x7f and 0xff are NaN; largest value 448; subnormals step by 2^-9.
#pragma once

#include <bit>
#include <cstdint>

namespace cupel {

inline constexpr float kE4m3Max = 448.0f;
inline constexpr std::uint8_t kE4m3Nan = 0x7f;  // bit 7 is the sign, as for every other code

// Exact. Keeps the sign of zero and of NaN.
constexpr float e4m3_to_float(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80u) << 24;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == kE4m3Nan) return std::bit_cast<float>(sign | 0x7fc00000u);
  // Exponent and mantissa moved into the float32 fields read 2^120 too small (bias 127 - 7), for
  // normal and subnormal codes alike.
  const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

// Round to nearest, ties to the even code. Magnitudes above 448, infinity included, saturate to
// 448; NaN gives 0x7f or 0xff. The sign is always kept: -0 and negatives that round to zero give
// 0x80.
constexpr std::uint8_t e4m3_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t code = 0;
  if (magnitude > 0x7f800000u) {
    code = kE4m3Nan;
  } else if (magnitude >= std::bit_cast<std::uint32_t>(kE4m3Max)) {
    code = 0x7e;
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-6f)) {
    // Adding 2^14, whose float32 neighbours are 2^-9 apart, rounds to a multiple of that step.
    code = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) -
           std::bit_cast<std::uint32_t>(0x1p14f);
  } else {
    code = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
  }
  return static_cast<std::uint8_t>(code | ((bits >> 24) & 0x80u));
}

// The e4m3 value nearest to `value`, by the rule of e4m3_from_float.
constexpr float round_e4m3(float value) {
  return e4m3_to_float(e4m3_from_float(value));
}

}  // namespace cupel
