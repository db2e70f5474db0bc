// Rows picked by number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/base/thread_pool.h"

namespace cupel {

// out[r][j] = table[ids[r]] for every copy j: the embedding as the streams of the hyper-connections
// (spec section 3.2).
struct EmbedParams {
  const std::uint16_t* table = nullptr;  // [vocab, width] bf16
  const std::int32_t* ids = nullptr;     // [rows], each in [0, vocab)
  std::size_t rows = 0;
  std::size_t copies = 1;
  std::size_t width = 0;
  float* out = nullptr;  // [rows, copies, width]
};
void embed(ThreadPool& pool, const EmbedParams& params);

// out[r] = in[index[r]].
struct GatherRowsParams {
  const float* in = nullptr;            // [any, width]
  const std::int32_t* index = nullptr;  // [rows]
  std::size_t rows = 0;
  std::size_t width = 0;
  float* out = nullptr;  // [rows, width]
};
void gather_rows(ThreadPool& pool, const GatherRowsParams& params);

}  // namespace cupel
