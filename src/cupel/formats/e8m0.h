// float8 e8m0 (spec/model.md 2.5): byte e stands for 2^(e - 127); 255 is NaN. No sign and no zero.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

namespace cupel {

inline constexpr int kE8m0Bias = 127;
inline constexpr std::uint8_t kE8m0Nan = 255;

// Exact. Byte 0 gives 2^-127, a subnormal float; byte 255 gives NaN.
constexpr float e8m0_to_float(std::uint8_t code) {
  if (code == 0) return 0x1p-127f;
  if (code == kE8m0Nan) return std::bit_cast<float>(0x7fc00000u);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

// The code of exactly `value`; nothing when no code has it (zero, negative, not a power of two,
// NaN, infinity, below 2^-127).
constexpr std::optional<std::uint8_t> e8m0_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (bits == std::bit_cast<std::uint32_t>(0x1p-127f)) return std::uint8_t{0};
  // A sign bit leaves a value above 255 after the shift.
  if ((bits & 0x7fffffu) != 0 || bits >> 23 == 0 || bits >> 23 >= kE8m0Nan) return std::nullopt;
  return static_cast<std::uint8_t>(bits >> 23);
}

}  // namespace cupel
