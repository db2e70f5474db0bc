#include "attention/sequence.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "support/random.h"

namespace cupel::test {
namespace {

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from, std::size_t first, std::size_t count,
            std::size_t width) {
  const T* begin = from.data() + first * width;
  to.insert(to.end(), begin, begin + count * width);
}

}  // namespace

ModelConfig small_config() {
  ModelConfig config;
  config.layers = 3;
  config.heads = kHeads;
  config.index_heads = kIndexHeads;
  config.index_topk = kTopk;
  config.window = kWindow;
  config.compress_ratios.assign(std::begin(kRatios), std::end(kRatios));
  return config;
}

std::unique_ptr<StagedBackend> Setting::make(Executor& executor) const {
  auto backend = make_backend(kind, dtype, numerics, small_config(), executor);
  auto* staged = dynamic_cast<StagedBackend*>(backend.get());
  if (staged == nullptr) throw std::logic_error("not a StagedBackend");
  backend.release();  // NOLINT(bugprone-unused-return-value): owned by what is returned
  return std::unique_ptr<StagedBackend>(staged);
}

std::vector<Setting> settings() {
  return {{"reference", BackendKind::kReference},
          {"packed", BackendKind::kPacked},
          {"unified_bf16", BackendKind::kUnified},
          {"unified_fp8", BackendKind::kUnified, KvDtype::kFp8E4m3}};
}

Sequence::Sequence(std::uint64_t seed, std::size_t length_in, int ratio_in)
    : ratio(ratio_in), length(length_in) {
  Random random(seed);
  const std::size_t completed = ratio == 0 ? 0 : length / static_cast<std::size_t>(ratio);
  q = random.bf16_normals(length * kHeads * kRow);
  // Heads from flat to peaked.
  for (std::size_t i = 0; i < q.size(); ++i)
    q[i] *= std::exp2(static_cast<float>(i / kRow % 4) - 1);
  kv = random.bf16_normals(length * kRow);
  entries = random.bf16_normals(completed * kRow);
  index_keys = random.bf16_normals(completed * kIndexRow);
  index_q = random.bf16_normals(length * kIndexHeads * kIndexRow);
  index_weights = random.bf16_normals(length * kIndexHeads, 0.1);
}

const std::vector<float>& Sequence::sink() {
  static const std::vector<float> values = {-30, -1, 0, 1, 3, 6, 12, 40};
  return values;
}

void run_step(StagedBackend& backend, int layer, std::span<const Part> parts) {
  Sequence all(0, 0, kRatios[layer]);
  std::vector<AttentionSegment> segments;
  std::size_t rows = 0;
  for (const Part& part : parts) {
    const Sequence& s = *part.sequence;
    segments.push_back({part.slot, static_cast<std::int64_t>(part.start), part.rows, rows});
    rows += part.rows;
    append(all.q, s.q, part.start, part.rows, kHeads * kRow);
    append(all.kv, s.kv, part.start, part.rows, kRow);
    append(all.index_q, s.index_q, part.start, part.rows, kIndexHeads * kIndexRow);
    append(all.index_weights, s.index_weights, part.start, part.rows, kIndexHeads);
    const auto completed = completed_entries(segments.back(), s.ratio);
    const auto first = static_cast<std::size_t>(completed.first);
    append(all.entries, s.entries, first, completed.count, kRow);
    append(all.index_keys, s.index_keys, first, completed.count, kIndexRow);
  }
  Output out{std::vector<float>(rows * kHeads * kRow, std::nanf("")),
             std::vector<std::int32_t>(rows * kTopk, -2)};
  backend.attend({.layer = layer,
                  .segments = segments,
                  .q = all.q.data(),
                  .kv = all.kv.data(),
                  .entries = all.entries.data(),
                  .index_keys = all.index_keys.data(),
                  .index_q = all.index_q.data(),
                  .index_weights = all.index_weights.data(),
                  .sink = Sequence::sink().data(),
                  .out = out.out.data(),
                  .selection = out.selection.data()});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    append(parts[i].output->out, out.out, segments[i].first_row, parts[i].rows, kHeads * kRow);
    append(parts[i].output->selection, out.selection, segments[i].first_row, parts[i].rows, kTopk);
  }
}

Output run_chunks(StagedBackend& backend, int layer, int slot, const Sequence& sequence,
                  const std::vector<std::size_t>& sizes) {
  Output output;
  std::size_t start = 0;
  for (std::size_t step = 0; start < sequence.length; ++step) {
    const std::size_t size = sizes[std::min(step, sizes.size() - 1)];
    const Part part{&sequence, slot, start, std::min(size, sequence.length - start), &output};
    run_step(backend, layer, {&part, 1});
    start += part.rows;
  }
  return output;
}

}  // namespace cupel::test
