#include "cupel/kernels/elementwise.h"

#include <cmath>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/rows.h"

namespace cupel {

void hadamard(ThreadPool& pool, const HadamardParams& p) {
  const float norm = 1.0f / std::sqrt(static_cast<float>(p.width));
  parallel_rows(pool, p.rows, 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      float* x = p.x + r * p.width;
      for (std::size_t half = 1; half < p.width; half *= 2) {
        for (std::size_t block = 0; block < p.width; block += 2 * half) {
          for (std::size_t i = block; i < block + half; ++i) {
            const float a = x[i], b = x[i + half];
            x[i] = a + b;
            x[i + half] = a - b;
          }
        }
      }
      for (std::size_t i = 0; i < p.width; ++i) {
        x[i] *= norm;
        if (p.round_bf16) x[i] = round_bf16(x[i]);
      }
    }
  });
}

void scale(ThreadPool& pool, const ScaleParams& p) {
  parallel_rows(pool, p.count, 4096, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      p.x[i] = p.round_bf16 ? round_bf16(round_bf16(p.x[i]) * p.factor) : p.x[i] * p.factor;
    }
  });
}

}  // namespace cupel
