#include "cupel/kernels/expert_batch.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/rows.h"

namespace cupel {

// Serial: a few integers for each row.
void expert_batch(ThreadPool&, const ExpertBatchParams& p) {
  const std::size_t count = p.rows * p.k;
  std::fill_n(p.offsets, p.experts + 1, 0);
  for (std::size_t i = 0; i < count; ++i) ++p.offsets[p.chosen[i] + 1];
  std::partial_sum(p.offsets, p.offsets + p.experts + 1, p.offsets);
  std::vector<std::int32_t> next(p.offsets, p.offsets + p.experts);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t row = next[static_cast<std::size_t>(p.chosen[i])]++;
    p.batch_rows[i] = row;
    p.source_rows[row] = static_cast<std::int32_t>(i / p.k);
    p.batch_weights[row] = p.weights[i];
  }
  std::fill_n(p.batch_weights + count, p.shared_rows, 1.0f);
}

void expert_sum(ThreadPool& pool, const ExpertSumParams& p) {
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      float* out = p.out + r * p.width;
      std::fill_n(out, p.width, 0.0f);
      const auto add = [&](std::size_t row) {
        const float* from = p.y + row * p.width;
        for (std::size_t i = 0; i < p.width; ++i) out[i] += from[i];
      };
      for (std::size_t i = 0; i < p.k; ++i) {
        add(static_cast<std::size_t>(p.batch_rows[r * p.k + i]));
      }
      for (std::size_t s = 0; s < p.shared; ++s) add(p.rows * p.k + s * p.rows + r);
      if (p.round_bf16) {
        for (std::size_t i = 0; i < p.width; ++i) out[i] = round_bf16(out[i]);
      }
    }
  });
}

}  // namespace cupel
