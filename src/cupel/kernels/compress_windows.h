// The pooling of a compressor (spec sections 3.7 and 4): the latents of every `ratio` tokens become
// one entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cupel/base/thread_pool.h"

namespace cupel {

// The pending rows of one sequence. Ratio 4: rows 0..3 are the last complete window, 4..7 the one
// being filled. Ratio 128: the one being filled.
constexpr std::size_t compressor_state_rows(int ratio) {
  return static_cast<std::size_t>(ratio == 4 ? 8 : ratio);
}

// Tokens of one sequence within a step.
struct CompressSegment {
  float* state_values = nullptr;  // [state rows, C], in and out
  float* state_gates = nullptr;   // [state rows, C], ape added
  std::int64_t start = 0;         // position of the first token
  std::size_t rows = 0;           // number of tokens
  std::size_t first_row = 0;      // of values and gates
  std::size_t first_entry = 0;    // of out
};

// Feeds the tokens into the states one by one; a token that completes a window writes its entry: in
// every column a softmax over the window's gates weights its values. C = 2 dim for ratio 4, where
// the windows overlap (the one before gives its first dim columns, the own one its last), else dim.
struct CompressWindowsParams {
  std::span<const CompressSegment> segments;  // on the host
  const float* values = nullptr;              // [rows, C]
  const float* gates = nullptr;               // [rows, C]
  const float* ape = nullptr;                 // [ratio, C]
  int ratio = 0;                              // 4 or 128
  std::size_t dim = 0;                        // a multiple of 16
  float* out = nullptr;                       // [completed, dim]
  bool round_bf16 = false;
};
void compress_windows(ThreadPool& pool, const CompressWindowsParams& params);

}  // namespace cupel
