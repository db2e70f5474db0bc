// What runs next: a step is planned as data before anything is computed.
//
// Requests are admitted in order of arrival as far as the cache has room for their tokens. A step
// takes one token of every sequence that decodes, then prompt chunks of the others up to a number
// of rows. Where room runs out kept prefixes go first, longest unused first; then the youngest
// running sequence gives up its cache and is computed again later: the same tokens give the same
// bits (DESIGN section 5).
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "cupel/engine/prefix_cache.h"
#include "cupel/engine/sequence.h"
#include "cupel/model/sequence_store.h"

namespace cupel {

struct SchedulerLimits {
  std::size_t max_running = 256;
  std::size_t max_waiting = 4096;
  std::size_t step_rows = 512;      // beyond which no further prompt chunk is added
  std::size_t prefill_chunk = 512;  // prompt tokens of a sequence in one step; 0 = all of them
  std::size_t max_cache_bytes = 0;  // 0 = no limit
  bool prefix_cache = true;
};

// Tokens [state.length, state.length + count) of a sequence.
struct StepSegment {
  Sequence* sequence = nullptr;
  std::size_t count = 0;
  bool samples = false;    // its last row gives the next token
  bool every_row = false;  // the logits of all rows are wanted, for log-probabilities of the prompt
};

struct StepPlan {
  std::vector<StepSegment> segments;
  std::size_t rows = 0;
};

struct SchedulerCounts {
  std::uint64_t preemptions = 0;
  std::uint64_t evictions = 0;      // kept prefixes given up for room
  std::uint64_t prompt_tokens = 0;  // of admitted requests
  std::uint64_t cached_tokens = 0;  // of those, taken from the prefix cache
};

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, SequenceStore& store);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Throws QueueFull where max_waiting requests wait.
  Sequence& submit(std::unique_ptr<Sequence> sequence);

  // Admits, makes room, and says what to compute. Empty only if nothing runs or waits.
  StepPlan plan();
  // After the step was computed: keeps the states that were asked for.
  void advance(const StepPlan& plan);
  // Takes a sequence out, waiting or running; its state stays in the prefix cache if `keep`.
  std::unique_ptr<Sequence> remove(RequestId id, bool keep);

  bool idle() const { return waiting_.empty() && running_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }
  std::vector<RequestId> ids() const;  // of all, oldest first
  const SchedulerCounts& counts() const { return counts_; }
  const SchedulerLimits& limits() const { return limits_; }
  PrefixCache& prefixes() { return prefixes_; }

 private:
  using Owned = std::unique_ptr<Sequence>;

  void admit();
  // Whether a sequence that is being computed will soon have a longer prefix of this one.
  bool waits_for_prefix(const Sequence& sequence, std::size_t cached);
  void plan_kept_prefixes();
  bool admit_one(Sequence& sequence);
  std::size_t chunk(const Sequence& sequence, std::size_t rows) const;
  // Makes room for `bytes` more than the plan takes; false where only `keeper` is left to preempt.
  bool make_room(std::size_t bytes, const Sequence& keeper, StepPlan& plan);
  bool room_for(std::size_t bytes) const;
  void preempt(Sequence& sequence);
  bool caches(const Sequence& sequence) const {
    return limits_.prefix_cache && !sequence.request.prompt_logprobs;
  }

  SchedulerLimits limits_;
  SequenceStore& store_;
  PrefixCache prefixes_;
  std::deque<Owned> waiting_;  // oldest first
  std::deque<Owned> running_;  // oldest first
  std::size_t planned_bytes_ = 0;
  // Common lengths with waiting sequences, by running sequence, of the admission at hand.
  std::vector<std::pair<Sequence*, std::size_t>> common_;
  SchedulerCounts counts_;
};

}  // namespace cupel
