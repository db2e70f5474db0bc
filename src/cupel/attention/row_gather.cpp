#include "cupel/attention/row_gather.h"

#include <algorithm>
#include <numeric>

#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

// Enough queries to decode a window row about three times in a long prefill, few enough to spread a
// short one over the threads.
constexpr std::size_t kBlockQueries = 32;

struct QueryBlock {
  const AttentionSegment* segment;
  std::size_t first, count;  // rows within the segment
};

// What a thread keeps from block to block.
struct BlockWorkspace {
  std::vector<float> window_rows, entry_rows;
  std::vector<std::int32_t> entry_slot;  // entry number -> row of entry_rows, -1 = not decoded
  std::vector<std::vector<std::int32_t>> chosen;
  QueryWorkspace query;
};

class BlockGather {
 public:
  BlockGather(const AttentionStep& step, const GatherParams& params, const GatherSource& source,
              const QueryBlock& block, BlockWorkspace& work)
      : step_(step), params_(params), source_(source), block_(block), work_(work) {}

  void choose_entries() {
    work_.chosen.resize(block_.count);
    for (std::size_t i = 0; i < block_.count; ++i) {
      const std::size_t row = block_.segment->first_row + block_.first + i;
      auto& chosen = work_.chosen[i];
      chosen.clear();
      if (params_.ratio == 0) continue;
      const auto visible = static_cast<std::size_t>((position(i) + 1) / params_.ratio);
      if (params_.index_keys == nullptr) {
        chosen.resize(visible);
        std::iota(chosen.begin(), chosen.end(), 0);
        continue;
      }
      chosen =
          select_entries(*params_.index_keys, block_.segment->slot, visible, params_.index_topk,
                         step_.index_q + row * params_.index_heads * kIndexDim,
                         step_.index_weights + row * params_.index_heads);
      if (step_.selection != nullptr) {
        std::int32_t* out = step_.selection + row * params_.index_topk;
        std::fill_n(out, params_.index_topk, -1);
        std::copy(chosen.begin(), chosen.end(), out);
      }
    }
  }

  void decode() {
    first_position_ = window_first(0);
    const std::int64_t last = position(block_.count - 1);
    work_.window_rows.resize(static_cast<std::size_t>(last - first_position_ + 1) * kKvDim);
    for (std::int64_t p = first_position_; p <= last; ++p) {
      source_.window(*block_.segment, p, window_row(p));
    }
    if (params_.ratio == 0) return;
    work_.entry_slot.assign(static_cast<std::size_t>((last + 1) / params_.ratio), -1);
    std::size_t decoded = 0;
    for (const auto& chosen : work_.chosen) {
      for (const std::int32_t e : chosen) {
        auto& slot = work_.entry_slot[static_cast<std::size_t>(e)];
        if (slot < 0) slot = static_cast<std::int32_t>(decoded++);
      }
    }
    work_.entry_rows.resize(decoded * kKvDim);
    for (std::size_t e = 0; e < work_.entry_slot.size(); ++e) {
      if (work_.entry_slot[e] < 0) continue;
      source_.entry(*block_.segment, static_cast<std::int64_t>(e), entry_row(e));
    }
  }

  void list(std::size_t i, QueryKeys& keys) {
    keys.position = position(i);
    keys.window_first = window_first(i);
    keys.window.clear();
    for (std::int64_t p = keys.window_first; p <= keys.position; ++p) {
      keys.window.push_back(window_row(p));
    }
    keys.entries.clear();
    for (const std::int32_t e : work_.chosen[i]) {
      keys.entries.push_back(entry_row(static_cast<std::size_t>(e)));
    }
  }

 private:
  std::int64_t position(std::size_t i) const {
    return block_.segment->start + static_cast<std::int64_t>(block_.first + i);
  }
  std::int64_t window_first(std::size_t i) const {
    return std::max<std::int64_t>(0, position(i) - params_.window + 1);
  }
  float* window_row(std::int64_t p) {
    return work_.window_rows.data() + static_cast<std::size_t>(p - first_position_) * kKvDim;
  }
  float* entry_row(std::size_t e) {
    return work_.entry_rows.data() + static_cast<std::size_t>(work_.entry_slot[e]) * kKvDim;
  }

  const AttentionStep& step_;
  const GatherParams& params_;
  const GatherSource& source_;
  const QueryBlock& block_;
  BlockWorkspace& work_;
  std::int64_t first_position_ = 0;
};

}  // namespace

CompletedEntries completed_entries(const AttentionSegment& segment, int ratio) {
  if (ratio == 0) return {};
  const std::int64_t first = segment.start / ratio;
  const std::int64_t last = (segment.start + static_cast<std::int64_t>(segment.rows)) / ratio;
  return {first, static_cast<std::size_t>(last - first)};
}

std::vector<std::size_t> entry_offsets(const AttentionStep& step, int ratio) {
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (const AttentionSegment& segment : step.segments) {
    offsets.push_back(total);
    total += completed_entries(segment, ratio).count;
  }
  return offsets;
}

void for_each_query(ThreadPool& pool, const AttentionStep& step, const GatherParams& params,
                    const GatherSource& source,
                    const std::function<void(std::size_t row, QueryWorkspace& work)>& attend) {
  std::vector<QueryBlock> blocks;
  for (const AttentionSegment& segment : step.segments) {
    for (std::size_t first = 0; first < segment.rows; first += kBlockQueries) {
      blocks.push_back({&segment, first, std::min(kBlockQueries, segment.rows - first)});
    }
  }
  pool.parallel_for(blocks.size(), [&](std::size_t index, int) {
    static thread_local BlockWorkspace work;
    const QueryBlock& block = blocks[index];
    BlockGather gather(step, params, source, block, work);
    gather.choose_entries();
    gather.decode();
    for (std::size_t i = 0; i < block.count; ++i) {
      gather.list(i, work.query.keys);
      attend(block.segment->first_row + block.first + i, work.query);
    }
  });
}

}  // namespace cupel
