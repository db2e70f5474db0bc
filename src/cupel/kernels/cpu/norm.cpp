#include "cupel/kernels/norm.h"

#include <cmath>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/rows.h"

namespace cupel {
namespace {

// Sixteen lanes over i mod 16, then distance 8, 4, 2, 1.
template <typename F>
float sum_lanes(std::size_t width, const F& term) {
  float lane[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= width; i += 16) {
    for (std::size_t l = 0; l < 16; ++l) lane[l] += term(i + l);
  }
  for (std::size_t l = 0; i + l < width; ++l) lane[l] += term(i + l);
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  }
  return lane[0];
}

}  // namespace

float sum_of_squares(const float* x, std::size_t width) {
  return sum_lanes(width, [x](std::size_t i) { return x[i] * x[i]; });
}

void rms_norm(ThreadPool& pool, const RmsNormParams& p) {
  const bool round = p.numerics == Numerics::kReference;
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* x = p.in + r * p.width;
      float* y = p.out + r * p.width;
      const float mean = sum_of_squares(x, p.width) / static_cast<float>(p.width);
      const float scale = 1.0f / std::sqrt(mean + p.eps);
      for (std::size_t i = 0; i < p.width; ++i) y[i] = p.weight[i] * (x[i] * scale);
      if (round) {
        for (std::size_t i = 0; i < p.width; ++i) y[i] = round_bf16(y[i]);
      }
    }
  });
}

void head_norm(ThreadPool& pool, const HeadNormParams& p) {
  parallel_rows(pool, p.rows, 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      float* x = p.x + r * p.width;
      const auto width = static_cast<float>(p.width);
      if (p.numerics == Numerics::kFloat32) {
        const float scale = 1.0f / std::sqrt(sum_of_squares(x, p.width) / width + p.eps);
        for (std::size_t i = 0; i < p.width; ++i) x[i] *= scale;
        continue;
      }
      const float sum = sum_lanes(p.width, [x](std::size_t i) { return round_bf16(x[i] * x[i]); });
      const float biased = round_bf16(round_bf16(sum / width) + p.eps);
      const float scale = round_bf16(1.0f / std::sqrt(biased));
      for (std::size_t i = 0; i < p.width; ++i) x[i] = round_bf16(x[i] * scale);
    }
  });
}

}  // namespace cupel
