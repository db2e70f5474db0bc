#include "cupel/model/compressor.h"

#include <algorithm>

#include "cupel/attention/row_gather.h"
#include "cupel/formats/bf16.h"
#include "cupel/kernels/gated_pool.h"
#include "cupel/kernels/linear.h"
#include "cupel/kernels/norm.h"

namespace cupel {
namespace {

// Pools the window that the state now holds complete into out [dim].
void pool_window(const CompressorState& state, int ratio, std::size_t dim, float* out) {
  const auto window = static_cast<std::size_t>(ratio);
  std::vector<const float*> values, gates;
  if (ratio == 4) {
    const std::size_t width = 2 * dim;
    for (std::size_t t = 0; t < 2 * window; ++t) {
      // The previous window gives its first columns, the own one its last.
      const bool own = t >= window;
      const std::size_t at = t * width + (own ? dim : 0);
      const bool there = own || state.has_previous;
      values.push_back(there ? state.values.data() + at : nullptr);
      gates.push_back(there ? state.gates.data() + at : nullptr);
    }
  } else {
    for (std::size_t t = 0; t < window; ++t) {
      values.push_back(state.values.data() + t * dim);
      gates.push_back(state.gates.data() + t * dim);
    }
  }
  gated_pool({.values = values, .gates = gates, .width = dim, .out = out});
}

}  // namespace

CompressorState fresh_compressor_state(int ratio, std::size_t dim) {
  const std::size_t rows = ratio == 4 ? 8 : static_cast<std::size_t>(ratio);
  const std::size_t width = ratio == 4 ? 2 * dim : dim;
  return {.values = std::vector<float>(rows * width), .gates = std::vector<float>(rows * width)};
}

std::vector<float> compress(ThreadPool& pool, const CompressorSettings& s,
                            const CompressorWeights& weights, const StepContext& step,
                            std::span<CompressorState* const> states, const float* x) {
  const std::size_t width = weights.wkv.n(), hidden = weights.wkv.k();
  const auto ratio = static_cast<std::size_t>(s.ratio);
  std::vector<float> values(step.rows() * width), gates(step.rows() * width);
  const LinearParams products[] = {{.x = x,
                                    .x_stride = hidden,
                                    .rows = step.rows(),
                                    .weight = &weights.wkv,
                                    .out = values.data(),
                                    .out_stride = width},
                                   {.x = x,
                                    .x_stride = hidden,
                                    .rows = step.rows(),
                                    .weight = &weights.wgate,
                                    .out = gates.data(),
                                    .out_stride = width}};
  linear(pool, products);

  std::vector<std::size_t> offsets;
  std::vector<std::int64_t> positions;  // first token of each completed window
  for (const AttentionSegment& segment : step.attention_segments) {
    offsets.push_back(positions.size());
    const auto completed = completed_entries(segment, s.ratio);
    for (std::size_t i = 0; i < completed.count; ++i) {
      positions.push_back((completed.first + static_cast<std::int64_t>(i)) * s.ratio);
    }
  }
  std::vector<float> entries(positions.size() * s.dim);

  pool.parallel_for(step.segments.size(), [&](std::size_t index, int) {
    const AttentionSegment& segment = step.attention_segments[index];
    CompressorState& state = *states[index];
    float* out = entries.data() + offsets[index] * s.dim;
    for (std::size_t r = 0; r < segment.rows; ++r) {
      const std::size_t row = segment.first_row + r;
      const auto phase =
          static_cast<std::size_t>(segment.start + static_cast<std::int64_t>(r)) % ratio;
      const std::size_t at = (s.ratio == 4 ? ratio + phase : phase) * width;
      std::copy_n(values.data() + row * width, width, state.values.data() + at);
      for (std::size_t c = 0; c < width; ++c) {
        state.gates[at + c] = gates[row * width + c] + weights.ape[phase * width + c];
      }
      if (phase + 1 != ratio) continue;
      pool_window(state, s.ratio, s.dim, out);
      out += s.dim;
      if (s.ratio == 4) {
        const auto half = static_cast<std::ptrdiff_t>(ratio * width);
        std::copy_n(state.values.begin() + half, half, state.values.begin());
        std::copy_n(state.gates.begin() + half, half, state.gates.begin());
        state.has_previous = true;
      }
    }
  });

  const bool round = s.numerics == Numerics::kReference;
  if (round) {
    for (float& e : entries) e = round_bf16(e);
  }
  rms_norm(pool, {.in = entries.data(),
                  .weight = weights.norm.data(),
                  .out = entries.data(),
                  .rows = positions.size(),
                  .width = s.dim,
                  .eps = s.norm_eps,
                  .numerics = s.numerics});
  const RopeTable table(pool, s.rope_frequencies, positions);
  rope(pool, {.x = entries.data(),
              .rows = positions.size(),
              .vectors = 1,
              .width = s.dim,
              .table = &table,
              .round_bf16 = round});
  return entries;
}

}  // namespace cupel
