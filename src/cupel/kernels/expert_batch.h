// The rows of a step in the order in which the experts work on them, and back (spec section 3.11).
//
// Batch rows are ordered by expert, then by row of the step; rows of the shared experts may follow.
// How many fall to an expert is known on the device alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/base/thread_pool.h"

namespace cupel {

struct ExpertBatchParams {
  const std::int32_t* chosen = nullptr;  // [rows, k], each in [0, experts), ascending within a row
  const float* weights = nullptr;        // [rows, k]
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t experts = 0;
  std::size_t shared_rows = 0;          // batch rows after those of the routed experts
  std::int32_t* offsets = nullptr;      // out [experts + 1]: expert e has batch rows
                                        // [offsets[e], offsets[e + 1])
  std::int32_t* source_rows = nullptr;  // out [rows * k]: the row of the step
  float* batch_weights = nullptr;       // out [rows * k + shared_rows]; 1 for shared rows
  std::int32_t* batch_rows = nullptr;   // out [rows, k]: where each choice ended up
};
void expert_batch(ThreadPool& pool, const ExpertBatchParams& params);

// out = sum of a row's batch rows, the routed ones by ascending expert from zero, then the shared
// ones; shared expert s has batch rows rows * k + s * rows + [0, rows).
struct ExpertSumParams {
  const float* y = nullptr;                  // [rows * k + shared * rows, width]
  const std::int32_t* batch_rows = nullptr;  // [rows, k]
  std::size_t rows = 0;
  std::size_t k = 0;
  std::size_t shared = 0;
  std::size_t width = 0;
  float* out = nullptr;  // [rows, width]
  bool round_bf16 = false;
};
void expert_sum(ThreadPool& pool, const ExpertSumParams& params);

}  // namespace cupel
