// float4 e2m1fn (spec/model.md 2.5): sign (bit 3), 2 exponent bits (bias 1), 1 mantissa bit. The
// values are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; no infinity and no NaN.
//
// Two codes share a byte: the low nibble is the element of even index. Bytes read from a tensor of
// signed dtype (I8) must be taken as unsigned first.
#pragma once

#include <bit>
#include <cstdint>

namespace cupel {

inline constexpr float kE2m1Max = 6.0f;

// Exact. Bits 4-7 of `code` are ignored, so that a packed byte gives its even element. Code 8 is
// -0.
constexpr float e2m1_to_float(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8u) << 28;
  // Exponent and mantissa moved into the float32 fields read 2^126 too small (bias 127 - 1).
  const float scaled =
      std::bit_cast<float>(static_cast<std::uint32_t>(code & 0x7u) << 22) * 0x1p126f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

// Round to nearest, ties to the even code; the result is 0..15. Magnitudes above 6, infinity
// included, saturate to 6, and the sign is kept (-0 gives 8). The format has no NaN: a NaN of
// either sign gives 7 (+6), as the saturating conversion of GPUs does. The block quantisers never
// rely on that: a NaN there reaches the scale of its group.
constexpr std::uint8_t e2m1_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7;
  std::uint32_t code = 0;
  if (magnitude >= std::bit_cast<std::uint32_t>(kE2m1Max)) {
    code = 0x7;
  } else if (magnitude < std::bit_cast<std::uint32_t>(1.0f)) {
    // Adding 2^22, whose float32 neighbours are 0.5 apart, rounds to a multiple of that step.
    code = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0x1p22f) -
           std::bit_cast<std::uint32_t>(0x1p22f);
  } else {
    code = ((magnitude + 0x1fffffu + ((magnitude >> 22) & 1u)) >> 22) - (126u << 1);
  }
  return static_cast<std::uint8_t>(code | ((bits >> 28) & 0x8u));
}

// The e2m1 value nearest to `value`, by the rule of e2m1_from_float (NaN becomes +6).
constexpr float round_e2m1(float value) {
  return e2m1_to_float(e2m1_from_float(value));
}

constexpr std::uint8_t e2m1_pack(std::uint8_t even, std::uint8_t odd) {
  return static_cast<std::uint8_t>((even & 0xfu) | (odd << 4));
}
constexpr std::uint8_t e2m1_even(std::uint8_t packed) {
  return packed & 0xfu;
}
constexpr std::uint8_t e2m1_odd(std::uint8_t packed) {
  return packed >> 4;
}

}  // namespace cupel
