// The rules of the formats written again in double, by enumeration and without bit tricks, for the
// tests to hold the implementation against.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cupel/formats/bf16.h"

namespace cupel::test {

// The same value: equal bits, so that -0 differs from 0, or NaN both.
inline bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// An exact double as float; beyond the range, infinity.
inline float to_float(double value) {
  if (std::fabs(value) < 0x1p128) return static_cast<float>(value);
  return std::copysign(std::numeric_limits<float>::infinity(), value < 0 ? -1.0f : 1.0f);
}

// A small float format as the list of its magnitudes, indexed by code without sign.
struct Grid {
  std::vector<double> magnitudes;
  unsigned sign;  // the code bit of the sign

  double max() const { return magnitudes.back(); }

  // Code nearest to `value` (not NaN), ties to the even code; beyond the largest value, the
  // largest.
  unsigned nearest(double value) const {
    const double magnitude = std::fmin(std::fabs(value), max());
    // From the largest down, as long as it gets no farther: distances fall, then rise.
    std::size_t best = magnitudes.size() - 1;
    for (std::size_t code = best; code-- > 0;) {
      const double distance = std::fabs(magnitude - magnitudes[code]);
      const double shortest = std::fabs(magnitude - magnitudes[best]);
      if (distance > shortest) break;
      if (distance < shortest || code % 2 == 0) best = code;
    }
    return static_cast<unsigned>(best) | (std::signbit(value) ? sign : 0u);
  }

  double value(unsigned code) const {
    const double magnitude = magnitudes.at(code & (sign - 1));
    return (code & sign) != 0 ? -magnitude : magnitude;
  }
};

// All codes below `codes`, read as exponent and `mantissa_bits` of mantissa.
inline Grid make_grid(unsigned codes, int mantissa_bits, int bias, unsigned sign) {
  Grid grid{{}, sign};
  for (unsigned code = 0; code < codes; ++code) {
    const int exponent = static_cast<int>(code >> mantissa_bits);
    const double fraction = std::ldexp(code % (1u << mantissa_bits), -mantissa_bits);
    grid.magnitudes.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                            : std::ldexp(1.0 + fraction, exponent - bias));
  }
  return grid;
}

inline const Grid& e4m3_grid() {
  static const Grid grid = make_grid(0x7f, 3, 7, 0x80);
  return grid;
}
// The table of the specification, not derived.
inline const Grid& e2m1_grid() {
  static const Grid grid{{0, 0.5, 1, 1.5, 2, 3, 4, 6}, 0x8};
  return grid;
}

// Smallest e with max(amax, floor) <= limit * 2^e.
inline int smallest_exponent(double amax, double limit, double floor) {
  int exponent = -200;
  while (std::fmax(amax, floor) > std::ldexp(limit, exponent)) ++exponent;
  return exponent;
}

// All 65,536 bf16 values in the order of their bits.
inline std::vector<float> all_bf16() {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    values.push_back(bf16_to_float(static_cast<std::uint16_t>(bits)));
  }
  return values;
}

}  // namespace cupel::test
