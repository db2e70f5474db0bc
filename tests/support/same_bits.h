// Comparison of arrays of floats bit for bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include <gtest/gtest.h>

namespace cupel::test {

// Equal bits, so that -0 differs from 0; any NaN equals any NaN.
inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// For EXPECT_TRUE: names the first element that differs.
inline testing::AssertionResult same_bits(std::span<const float> actual,
                                          std::span<const float> expected) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure()
           << actual.size() << " elements, expected " << expected.size();
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!same_bits(actual[i], expected[i])) {
      return testing::AssertionFailure() << "element " << i << " is " << std::hexfloat << actual[i]
                                         << ", expected " << expected[i];
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace cupel::test
