#include "cupel/model/compressor.h"

#include <vector>

#include "cupel/attention/row_gather.h"

namespace cupel {

CompressorState fresh_compressor_state(DeviceMemory& memory, int ratio, std::size_t dim) {
  const std::size_t size = compressor_state_rows(ratio) * (ratio == 4 ? 2 * dim : dim);
  return {.values = {memory, size}, .gates = {memory, size}};
}

DeviceArray<float> compress(Executor& executor, const CompressorSettings& s,
                            const CompressorWeights& weights, const StepContext& step,
                            std::span<CompressorState* const> states, const float* x) {
  const std::size_t width = weights.wkv->n(), hidden = weights.wkv->k();
  DeviceArray<float> values(executor, step.rows() * width), gates(executor, step.rows() * width);
  const LinearParams products[] = {{.x = x,
                                    .x_stride = hidden,
                                    .rows = step.rows(),
                                    .weight = weights.wkv.get(),
                                    .out = values.data(),
                                    .out_stride = width},
                                   {.x = x,
                                    .x_stride = hidden,
                                    .rows = step.rows(),
                                    .weight = weights.wgate.get(),
                                    .out = gates.data(),
                                    .out_stride = width}};
  executor.linear(products);

  std::vector<CompressSegment> segments;
  std::vector<std::int64_t> positions;  // first token of each completed window
  for (std::size_t i = 0; i < step.segments.size(); ++i) {
    const AttentionSegment& segment = step.attention_segments[i];
    segments.push_back({.state_values = states[i]->values.data(),
                        .state_gates = states[i]->gates.data(),
                        .start = segment.start,
                        .rows = segment.rows,
                        .first_row = segment.first_row,
                        .first_entry = positions.size()});
    const auto completed = completed_entries(segment, s.ratio);
    for (std::size_t entry = 0; entry < completed.count; ++entry) {
      positions.push_back((completed.first + static_cast<std::int64_t>(entry)) * s.ratio);
    }
  }
  const bool round = s.numerics == Numerics::kReference;
  DeviceArray<float> entries(executor, positions.size() * s.dim);
  executor.compress_windows({.segments = segments,
                             .values = values.data(),
                             .gates = gates.data(),
                             .ape = weights.ape.data(),
                             .ratio = s.ratio,
                             .dim = s.dim,
                             .out = entries.data(),
                             .round_bf16 = round});
  if (positions.empty()) return entries;
  executor.rms_norm({.in = entries.data(),
                     .weight = weights.norm.data(),
                     .out = entries.data(),
                     .rows = positions.size(),
                     .width = s.dim,
                     .eps = s.norm_eps,
                     .numerics = s.numerics});
  const RopeTable table(executor, s.rope_frequencies, positions);
  executor.rope({.x = entries.data(),
                 .rows = positions.size(),
                 .vectors = 1,
                 .width = s.dim,
                 .dim = table.dim,
                 .cosines = table.cosines.data(),
                 .sines = table.sines.data(),
                 .round_bf16 = round});
  return entries;
}

}  // namespace cupel
