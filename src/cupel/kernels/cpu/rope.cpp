#include "cupel/kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/rows.h"

namespace cupel {
namespace {

// The pair index below which a frequency turns more than `rotations` times within the original
// context.
double correction_index(const RopeSettings& s, double rotations) {
  return static_cast<double>(s.dim) *
         std::log(s.original_positions / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(s.theta));
}

}  // namespace

std::vector<float> rope_frequencies(const RopeSettings& s) {
  std::vector<float> freq(s.dim / 2);
  for (std::size_t i = 0; i < freq.size(); ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(s.dim);
    freq[i] = 1.0f / static_cast<float>(std::pow(s.theta, exponent));
  }
  if (!s.yarn) return freq;
  const double last = static_cast<double>(s.dim) - 1;
  const auto low =
      static_cast<float>(std::clamp(std::floor(correction_index(s, s.beta_fast)), 0.0, last));
  auto high =
      static_cast<float>(std::clamp(std::ceil(correction_index(s, s.beta_slow)), 0.0, last));
  if (low == high) high += 0.001f;
  for (std::size_t i = 0; i < freq.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - low) / (high - low), 0.0f, 1.0f);
    const float smooth = 1.0f - ramp;
    freq[i] = freq[i] / static_cast<float>(s.factor) * (1.0f - smooth) + freq[i] * smooth;
  }
  return freq;
}

void rope_table(ThreadPool& pool, const RopeTableParams& p) {
  const std::size_t pairs = p.frequencies.size();
  parallel_rows(pool, p.positions.size(), 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      for (std::size_t i = 0; i < pairs; ++i) {
        // The angle is an fp32 product (spec 3.4); its cosine and sine are then nearly exact.
        const double angle = static_cast<float>(p.positions[r]) * p.frequencies[i];
        p.cosines[r * pairs + i] = static_cast<float>(std::cos(angle));
        p.sines[r * pairs + i] = static_cast<float>(std::sin(angle));
      }
    }
  });
}

void rope(ThreadPool& pool, const RopeParams& p) {
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* cosine = p.cosines + r * p.dim / 2;
      const float* sine = p.sines + r * p.dim / 2;
      for (std::size_t v = 0; v < p.vectors; ++v) {
        float* x = p.x + (r * p.vectors + v) * p.width + p.width - p.dim;
        for (std::size_t i = 0; i < p.dim / 2; ++i) {
          const float a = x[2 * i], b = x[2 * i + 1];
          const float s = p.inverse ? -sine[i] : sine[i];
          const float re = a * cosine[i] - b * s;
          const float im = a * s + b * cosine[i];
          x[2 * i] = p.round_bf16 ? round_bf16(re) : re;
          x[2 * i + 1] = p.round_bf16 ? round_bf16(im) : im;
        }
      }
    }
  });
}

}  // namespace cupel
