// Splits the rows of a tensor over the thread pool.
#pragma once

#include <algorithm>
#include <cstddef>

#include "cupel/base/thread_pool.h"

namespace cupel {

// Calls f(first, last) for consecutive blocks of at most `grain` rows.
template <typename F>
void parallel_rows(ThreadPool& pool, std::size_t rows, std::size_t grain, const F& f) {
  const std::size_t blocks = (rows + grain - 1) / grain;
  pool.parallel_for(blocks, [&](std::size_t block, int) {
    f(block * grain, std::min(rows, (block + 1) * grain));
  });
}

}  // namespace cupel
