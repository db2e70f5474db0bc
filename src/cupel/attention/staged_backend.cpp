#include "cupel/attention/staged_backend.h"

#include <algorithm>
#include <cmath>

#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

// The longest record of any backend: 512 fp32.
constexpr std::size_t kMaxRecord = kKvDim * sizeof(float);

std::int64_t position_of(const AttentionSegment& segment, std::size_t row) {
  return segment.start + static_cast<std::int64_t>(row);
}

}  // namespace

StagedBackend::StagedBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config,
                             IndexForm index_form)
    : pool_(pool),
      numerics_(numerics),
      heads_(static_cast<std::size_t>(config.heads)),
      index_heads_(static_cast<std::size_t>(config.index_heads)),
      index_topk_(static_cast<std::size_t>(config.index_topk)),
      window_(config.window),
      layers_(static_cast<std::size_t>(config.layers)) {
  const IndexForm form = numerics == Numerics::kFloat32 ? IndexForm::kF32 : index_form;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    layers_[l].ratio = config.ratio(static_cast<int>(l));
    if (layers_[l].ratio == 4) layers_[l].index_keys = make_index_keys(form, index_heads_);
  }
}

void StagedBackend::set_rows(int layer, std::unique_ptr<RowStore> rows) {
  layers_[static_cast<std::size_t>(layer)].rows = std::move(rows);
}

int StagedBackend::open() {
  const int slot = slots_.take();
  for (Layer& layer : layers_) {
    layer.rows->open(slot);
    if (layer.index_keys) layer.index_keys->open(slot);
  }
  return slot;
}

void StagedBackend::close(int slot) {
  slots_.give_back(slot);
  for (Layer& layer : layers_) {
    layer.rows->close(slot);
    if (layer.index_keys) layer.index_keys->close(slot);
  }
}

int StagedBackend::fork(int from, std::int64_t length) {
  const int to = open();
  for (Layer& layer : layers_) {
    const std::size_t entries = layer.entries(length);
    layer.rows->fork(from, to, entries);
    if (layer.index_keys) layer.index_keys->fork(from, to, entries);
  }
  return to;
}

// Stores what the step completes and returns its window rows, encoded, [rows] records.
std::vector<std::byte> StagedBackend::stage(const AttentionStep& step, Layer& layer) const {
  const std::size_t record = layer.rows->record_bytes();
  const auto offsets = entry_offsets(step, layer.ratio);
  std::size_t total = 0;
  for (const AttentionSegment& segment : step.segments) {
    const auto completed = completed_entries(segment, layer.ratio);
    const auto count = static_cast<std::size_t>(completed.first) + completed.count;
    layer.rows->reserve(segment.slot, count);
    if (layer.index_keys) layer.index_keys->reserve(segment.slot, count);
    total = std::max(total, segment.first_row + segment.rows);
  }
  std::vector<std::byte> staged(total * record);
  pool_.parallel_for(step.segments.size(), [&](std::size_t s, int) {
    const AttentionSegment& segment = step.segments[s];
    for (std::size_t r = segment.first_row; r < segment.first_row + segment.rows; ++r) {
      layer.rows->encode(step.kv + r * kKvDim, staged.data() + r * record);
    }
    const auto completed = completed_entries(segment, layer.ratio);
    for (std::size_t i = 0; i < completed.count; ++i) {
      const std::int64_t entry = completed.first + static_cast<std::int64_t>(i);
      std::byte encoded[kMaxRecord];
      layer.rows->encode(step.entries + (offsets[s] + i) * kKvDim, encoded);
      layer.rows->write_entry(segment.slot, entry, encoded);
      if (layer.index_keys) {
        layer.index_keys->store(segment.slot, static_cast<std::size_t>(entry),
                                step.index_keys + (offsets[s] + i) * kIndexDim);
      }
    }
  });
  return staged;
}

void StagedBackend::attend(const AttentionStep& step) {
  Layer& layer = layers_[static_cast<std::size_t>(step.layer)];
  const std::size_t record = layer.rows->record_bytes();
  const std::vector<std::byte> staged = stage(step, layer);
  const auto staged_row = [&](const AttentionSegment& segment, std::size_t row) {
    return staged.data() + (segment.first_row + row) * record;
  };

  const GatherSource source{
      .window =
          [&](const AttentionSegment& segment, std::int64_t position, float* out) {
            if (position < segment.start) {
              read_window(segment.slot, step.layer, position, out);
            } else {
              layer.rows->decode(
                  staged_row(segment, static_cast<std::size_t>(position - segment.start)), out);
            }
          },
      .entry = [&](const AttentionSegment& segment, std::int64_t entry,
                   float* out) { read_entry(segment.slot, step.layer, entry, out); }};
  const GatherParams gather{.ratio = layer.ratio,
                            .window = window_,
                            .index_topk = index_topk_,
                            .index_heads = index_heads_,
                            .index_keys = layer.index_keys.get()};
  const float scale = 1.0f / std::sqrt(static_cast<float>(kKvDim));
  for_each_query(pool_, step, gather, source, [&](std::size_t row, QueryWorkspace& work) {
    work.list.clear();
    list_keys(work.keys, work.list);
    attend_row({.q = step.q + row * heads_ * kKvDim,
                .keys = work.list,
                .sink = step.sink,
                .heads = heads_,
                .scale = scale,
                .round_bf16 = numerics_ == Numerics::kReference,
                .out = step.out + row * heads_ * kKvDim,
                .scratch = &work.scratch});
  });

  pool_.parallel_for(step.segments.size(), [&](std::size_t s, int) {
    const AttentionSegment& segment = step.segments[s];
    const auto window = static_cast<std::size_t>(window_);
    const std::size_t skip = segment.rows > window ? segment.rows - window : 0;
    for (std::size_t r = skip; r < segment.rows; ++r) {
      layer.rows->write_window(segment.slot, position_of(segment, r), staged_row(segment, r));
    }
  });
}

void StagedBackend::read_window(int slot, int layer, std::int64_t position, float* out) const {
  std::byte encoded[kMaxRecord];
  rows(layer).read_window(slot, position, encoded);
  rows(layer).decode(encoded, out);
}

void StagedBackend::read_entry(int slot, int layer, std::int64_t entry, float* out) const {
  std::byte encoded[kMaxRecord];
  rows(layer).read_entry(slot, entry, encoded);
  rows(layer).decode(encoded, out);
}

std::size_t StagedBackend::bytes_in_use() const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_) {
    bytes += layer.rows->bytes_in_use();
    if (layer.index_keys) bytes += layer.index_keys->bytes_in_use();
  }
  return bytes;
}

std::size_t StagedBackend::sequence_bytes(std::int64_t length) const {
  std::size_t bytes = 0;
  for (const Layer& layer : layers_) {
    const std::size_t entries = layer.entries(length);
    bytes += layer.rows->sequence_bytes(entries);
    if (layer.index_keys) bytes += layer.index_keys->sequence_bytes(entries);
  }
  return bytes;
}

bool StagedBackend::owners_agree() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const Layer& layer) {
    return layer.rows->owners_agree() && (!layer.index_keys || layer.index_keys->owners_agree());
  });
}

}  // namespace cupel
