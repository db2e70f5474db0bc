// Reproducible test data: the same bits with every compiler and standard library.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

#include "cupel/formats/bf16.h"

namespace cupel::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  // In [0, end).
  std::size_t below(std::size_t end) { return engine_() % end; }
  // In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  // Nearly normal with standard deviation `sigma`: the sum of four uniform numbers from one draw.
  double normal(double sigma = 1) {
    const std::uint64_t draw = engine_();
    double sum = -4 * 0x7fff.8p0;
    for (int i = 0; i < 64; i += 16) sum += static_cast<double>(draw >> i & 0xffffu);
    return sigma * sum * (0x1p-16 * std::numbers::sqrt3);
  }

  std::vector<float> normals(std::size_t count, double sigma = 1) {
    std::vector<float> values(count);
    for (float& v : values) v = static_cast<float>(normal(sigma));
    return values;
  }
  std::vector<float> bf16_normals(std::size_t count, double sigma = 1) {
    std::vector<float> values = normals(count, sigma);
    for (float& v : values) v = round_bf16(v);
    return values;
  }
  // Normal in bf16, with magnitudes spread over 2^-20 .. 2^20 from group to group of 32, some
  // groups all zero.
  std::vector<float> uneven(std::size_t count) {
    std::vector<float> values(count);
    double sigma = 1;
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 32 == 0) sigma = below(8) == 0 ? 0 : std::exp2(uniform(-20, 20));
      values[i] = round_bf16(static_cast<float>(normal(sigma)));
    }
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cupel::test
