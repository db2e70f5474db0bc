#include "cupel/kernels/finite.h"

#include <algorithm>
#include <cmath>

#include "cupel/kernels/rows.h"

namespace cupel {

void mark_not_finite(ThreadPool& pool, const MarkNotFiniteParams& p) {
  parallel_rows(pool, p.rows, 64, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (p.marks[i] >= 0) continue;
      const float* row = p.x + static_cast<std::size_t>(p.index[i]) * p.width;
      if (!std::all_of(row, row + p.width, [](float x) { return std::isfinite(x); })) {
        p.marks[i] = p.mark;
      }
    }
  });
}

}  // namespace cupel
