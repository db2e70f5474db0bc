// The one exponential function of the program.
//
// Every softmax, sigmoid and SiLU uses this sequence of operations, scalar or vector, so that a
// value does not depend on the C library, on the instruction set, or on who computed it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cupel {

namespace exp_constants {
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kLn2High = 0x1.62e400p-1f;  // 15 significant bits: n * kLn2High is exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
// Minimax polynomial for (e^r - 1) / r on [-ln2/2, ln2/2], highest degree last.
inline constexpr float kC1 = 0x1.000000p+0f;
inline constexpr float kC2 = 0x1.fffff8p-2f;
inline constexpr float kC3 = 0x1.55548ep-3f;
inline constexpr float kC4 = 0x1.555b58p-5f;
inline constexpr float kC5 = 0x1.123b8ep-7f;
inline constexpr float kC6 = 0x1.687c22p-10f;
// Below kMin the result is 0 (it would be subnormal), above kMax infinity.
inline constexpr float kMin = -87.33654f;
inline constexpr float kMax = 88.72283f;
}  // namespace exp_constants

// e^x, at most 2 ulp from exact on [kMin, kMax] (tested); NaN stays NaN.
inline float exp_f32(float x) {
  using namespace exp_constants;
  if (std::isnan(x)) return x;
  if (x < kMin) return 0.0f;
  if (x > kMax) return std::numeric_limits<float>::infinity();
  const float n = std::nearbyint(x * kLog2E);
  float r = std::fma(-n, kLn2High, x);
  r = std::fma(-n, kLn2Low, r);
  float p = kC6;
  p = std::fma(p, r, kC5);
  p = std::fma(p, r, kC4);
  p = std::fma(p, r, kC3);
  p = std::fma(p, r, kC2);
  p = std::fma(p, r, kC1);
  p = std::fma(p, r, 1.0f);
  const int whole = static_cast<int>(n);
  const int half = whole >> 1;
  const auto power = [](int e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
  };
  return p * power(half) * power(whole - half);
}

inline float sigmoid_f32(float x) {
  return 1.0f / (1.0f + exp_f32(-x));
}

}  // namespace cupel
