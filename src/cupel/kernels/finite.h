// Where values stop being finite.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/base/thread_pool.h"

namespace cupel {

// marks[i] = mark where it is negative and row index[i] holds a NaN or an infinity.
struct MarkNotFiniteParams {
  const float* x = nullptr;             // [any, width]
  const std::int32_t* index = nullptr;  // [rows]
  std::size_t rows = 0;
  std::size_t width = 0;
  std::int32_t mark = 0;
  std::int32_t* marks = nullptr;  // [rows]
};
void mark_not_finite(ThreadPool& pool, const MarkNotFiniteParams& params);

}  // namespace cupel
