// bfloat16: the upper half of an IEEE float32.
#pragma once

#include <bit>
#include <cstdint>

namespace cupel {

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Round to nearest, ties to even. Overflow gives infinity; a NaN stays a (quiet) NaN with its sign.
constexpr std::uint16_t bf16_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// The bf16 nearest to `value`, as a float: b(x) of the spec.
constexpr float round_bf16(float value) {
  return bf16_to_float(bf16_from_float(value));
}

}  // namespace cupel
