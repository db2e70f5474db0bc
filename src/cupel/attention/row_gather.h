// Which stored rows the queries of a step need, and their decoding.
//
// A step is cut into blocks of consecutive queries of one sequence. A block decodes every row that
// any of its queries reads once, into fp32; each query then lists its keys in the order of its
// backend. Cutting does not change a result: a decoded row depends on its bytes alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cupel/attention/backend.h"
#include "cupel/attention/index_keys.h"
#include "cupel/base/thread_pool.h"

namespace cupel {

// Entries [first, first + count) that a segment completes in a layer of the given ratio.
struct CompletedEntries {
  std::int64_t first = 0;
  std::size_t count = 0;
};
CompletedEntries completed_entries(const AttentionSegment& segment, int ratio);

// Offset of each segment's first completed row in AttentionStep::entries.
std::vector<std::size_t> entry_offsets(const AttentionStep& step, int ratio);

struct GatherSource {
  // Decode one stored row to [512].
  std::function<void(const AttentionSegment&, std::int64_t position, float* out)> window;
  std::function<void(const AttentionSegment&, std::int64_t entry, float* out)> entry;
};

// The rows one query attends to.
struct QueryKeys {
  std::int64_t position = 0;
  std::int64_t window_first = 0;      // oldest visible position
  std::vector<const float*> window;   // [position - window_first + 1], ascending position
  std::vector<const float*> entries;  // ascending entry number
};

struct GatherParams {
  int ratio = 0;
  int window = 128;
  std::size_t index_topk = 0;  // ratio 4 only
  std::size_t index_heads = 0;
  const IndexKeys* index_keys = nullptr;  // ratio 4 only
};

// What a thread keeps from query to query.
struct QueryWorkspace {
  QueryKeys keys;                  // of the query at hand
  std::vector<const float*> list;  // for the caller
  std::vector<float> scratch;      // for the caller
};

// Calls attend(row of the step, workspace) for every query of the step, in parallel.
void for_each_query(ThreadPool& pool, const AttentionStep& step, const GatherParams& params,
                    const GatherSource& source,
                    const std::function<void(std::size_t row, QueryWorkspace& work)>& attend);

}  // namespace cupel
