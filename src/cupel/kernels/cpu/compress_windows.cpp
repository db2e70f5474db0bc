#include "cupel/kernels/compress_windows.h"

#include <algorithm>
#include <vector>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/gated_pool.h"

namespace cupel {
namespace {

// Pools the window that the state now holds complete into out [dim].
void pool_window(const CompressWindowsParams& p, const CompressSegment& segment, bool has_previous,
                 float* out) {
  const auto window = static_cast<std::size_t>(p.ratio);
  std::vector<const float*> values, gates;
  if (p.ratio == 4) {
    const std::size_t width = 2 * p.dim;
    for (std::size_t t = 0; t < 2 * window; ++t) {
      // The previous window gives its first columns, the own one its last.
      const bool own = t >= window;
      const std::size_t at = t * width + (own ? p.dim : 0);
      const bool there = own || has_previous;
      values.push_back(there ? segment.state_values + at : nullptr);
      gates.push_back(there ? segment.state_gates + at : nullptr);
    }
  } else {
    for (std::size_t t = 0; t < window; ++t) {
      values.push_back(segment.state_values + t * p.dim);
      gates.push_back(segment.state_gates + t * p.dim);
    }
  }
  gated_pool({.values = values, .gates = gates, .width = p.dim, .out = out});
  if (p.round_bf16) {
    for (std::size_t i = 0; i < p.dim; ++i) out[i] = round_bf16(out[i]);
  }
}

void compress_segment(const CompressWindowsParams& p, const CompressSegment& segment) {
  const auto ratio = static_cast<std::size_t>(p.ratio);
  const std::size_t width = p.ratio == 4 ? 2 * p.dim : p.dim;
  float* out = p.out + segment.first_entry * p.dim;
  for (std::size_t r = 0; r < segment.rows; ++r) {
    const std::size_t row = segment.first_row + r;
    const auto position = static_cast<std::size_t>(segment.start) + r;
    const std::size_t phase = position % ratio;
    const std::size_t at = (p.ratio == 4 ? ratio + phase : phase) * width;
    std::copy_n(p.values + row * width, width, segment.state_values + at);
    for (std::size_t c = 0; c < width; ++c) {
      segment.state_gates[at + c] = p.gates[row * width + c] + p.ape[phase * width + c];
    }
    if (phase + 1 != ratio) continue;
    pool_window(p, segment, position >= ratio, out);
    out += p.dim;
    if (p.ratio == 4) {
      const std::size_t half = ratio * width;
      std::copy_n(segment.state_values + half, half, segment.state_values);
      std::copy_n(segment.state_gates + half, half, segment.state_gates);
    }
  }
}

}  // namespace

void compress_windows(ThreadPool& pool, const CompressWindowsParams& p) {
  pool.parallel_for(p.segments.size(),
                    [&](std::size_t s, int) { compress_segment(p, p.segments[s]); });
}

}  // namespace cupel
