#include "cupel/engine/scheduler.h"

#include <algorithm>

#include "cupel/base/error.h"

namespace cupel {
namespace {

// A kept prefix that spares fewer tokens than this is not worth a copy of the state.
constexpr std::size_t kMinGain = 16;
// Waiting requests looked at in one admission.
constexpr std::size_t kScan = 2048;

std::size_t common_prefix(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b) {
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<std::size_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
}

std::int64_t length(std::size_t tokens) {
  return static_cast<std::int64_t>(tokens);
}

template <typename Queue>
auto find_id(Queue& queue, RequestId id) {
  return std::find_if(queue.begin(), queue.end(), [&](const auto& s) { return s->id == id; });
}

// Keeps a queue in order of arrival.
template <typename Queue>
void insert_in_order(Queue& queue, std::unique_ptr<Sequence> sequence) {
  auto at = queue.end();
  while (at != queue.begin() && (*std::prev(at))->id > sequence->id) --at;
  queue.insert(at, std::move(sequence));
}

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, SequenceStore& store)
    : limits_(limits), store_(store), prefixes_(store) {}

Scheduler::~Scheduler() {
  for (const Owned& s : running_) store_.close(s->state);
}

Sequence& Scheduler::submit(Owned sequence) {
  if (waiting_.size() >= limits_.max_waiting) throw QueueFull(limits_.max_waiting);
  insert_in_order(waiting_, std::move(sequence));
  return *waiting_.back();
}

std::vector<RequestId> Scheduler::ids() const {
  std::vector<RequestId> ids;
  for (const auto* queue : {&running_, &waiting_}) {
    for (const Owned& s : *queue) ids.push_back(s->id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool Scheduler::room_for(std::size_t bytes) const {
  return limits_.max_cache_bytes == 0 ||
         store_.cache_bytes() + planned_bytes_ + bytes <= limits_.max_cache_bytes;
}

bool Scheduler::waits_for_prefix(const Sequence& sequence, std::size_t cached) {
  Sequence* best = nullptr;
  std::size_t best_common = cached + kMinGain - 1;
  for (const Owned& r : running_) {
    if (r->pending() <= 1 || !caches(*r)) continue;
    // Every sequence computes its last token itself: that row gives its next one.
    const std::size_t common =
        std::min(common_prefix(sequence.tokens, r->tokens), sequence.tokens.size() - 1);
    if (common > best_common && r->computed() < common) {
      best = r.get();
      best_common = common;
    }
  }
  if (best == nullptr) return false;
  common_.emplace_back(best, best_common);
  return true;
}

// Common lengths close together share one kept state, at the shortest of them.
void Scheduler::plan_kept_prefixes() {
  std::sort(common_.begin(), common_.end());
  for (const auto& [sequence, common] : common_) {
    const auto after = sequence->keep_at.upper_bound(common);
    const bool near = after != sequence->keep_at.begin() && *std::prev(after) + kMinGain > common;
    if (!near) sequence->keep_at.insert(common);
  }
  common_.clear();
}

bool Scheduler::admit_one(Sequence& s) {
  // What running sequences still need for tokens they have is spoken for, and a page of each beside
  // it: else the newcomer would soon be preempted for them.
  const std::size_t page = store_.sequence_bytes(kPageTokens) - store_.sequence_bytes(0);
  std::size_t promised = 0;
  for (const Owned& r : running_) {
    promised += store_.sequence_bytes(length(r->tokens.size())) -
                store_.sequence_bytes(length(r->computed())) + page;
  }
  const std::span<const std::int32_t> usable = std::span(s.tokens).first(s.tokens.size() - 1);
  for (;;) {
    PrefixCache::Match match;
    if (caches(s)) match = prefixes_.find(usable);
    const std::size_t cached = match.length();
    std::size_t need = store_.sequence_bytes(length(s.tokens.size()));
    if (cached > 0) {
      need += store_.fork_bytes(length(cached)) - store_.sequence_bytes(length(cached));
    }
    if (room_for(promised + need)) {
      s.state = cached > 0 ? store_.fork(*match.state) : store_.open();
      // Others came this way: where this one parts from them is worth keeping.
      if (match.common >= cached + kMinGain) s.keep_at.insert(match.common);
      if (!s.started) {
        s.result.cached_prompt_tokens =
            static_cast<int>(std::min(cached, s.request.prompt_ids.size()));
        counts_.prompt_tokens += s.request.prompt_ids.size();
        counts_.cached_tokens += cached;
        s.started = true;
      }
      return true;
    }
    if (!prefixes_.evict()) return false;
    ++counts_.evictions;
  }
}

void Scheduler::admit() {
  std::size_t rows = 0, scanned = 0;
  for (const Owned& r : running_) rows += chunk(*r, limits_.step_rows);
  for (auto at = waiting_.begin();
       at != waiting_.end() && scanned < kScan && running_.size() < limits_.max_running &&
       rows < limits_.step_rows;
       ++scanned) {
    Sequence& s = **at;
    if (caches(s)) {
      const auto usable = std::span(s.tokens).first(s.tokens.size() - 1);
      if (waits_for_prefix(s, prefixes_.find(usable).length())) {
        ++at;
        continue;
      }
    }
    // No one overtakes a request that waits for room.
    if (!admit_one(s)) break;
    rows += chunk(s, limits_.step_rows);
    insert_in_order(running_, std::move(*at));
    at = waiting_.erase(at);
  }
  plan_kept_prefixes();
}

std::size_t Scheduler::chunk(const Sequence& s, std::size_t rows) const {
  std::size_t count = s.pending();
  if (limits_.prefill_chunk > 0) count = std::min({count, limits_.prefill_chunk, rows});
  const auto keep = s.keep_at.upper_bound(s.computed());
  if (keep != s.keep_at.end()) count = std::min(count, *keep - s.computed());
  return count;
}

void Scheduler::preempt(Sequence& s) {
  store_.close(s.state);
  s.keep_at.clear();
  ++s.result.preemptions;
  ++counts_.preemptions;
  const auto at = find_id(running_, s.id);
  insert_in_order(waiting_, std::move(*at));
  running_.erase(at);
}

bool Scheduler::make_room(std::size_t bytes, const Sequence& keeper, StepPlan& plan) {
  while (!room_for(bytes)) {
    if (prefixes_.evict()) {
      ++counts_.evictions;
      continue;
    }
    Sequence& youngest = *running_.back();
    if (youngest.id == keeper.id) return false;
    const auto at = std::find_if(plan.segments.begin(), plan.segments.end(),
                                 [&](const StepSegment& p) { return p.sequence == &youngest; });
    if (at != plan.segments.end()) {
      planned_bytes_ -= store_.sequence_bytes(length(youngest.computed() + at->count)) -
                        store_.sequence_bytes(youngest.state.length);
      plan.rows -= at->count;
      plan.segments.erase(at);
    }
    preempt(youngest);
  }
  return true;
}

StepPlan Scheduler::plan() {
  planned_bytes_ = 0;
  admit();
  std::vector<Sequence*> order;
  for (const bool decodes : {true, false}) {
    for (const Owned& s : running_) {
      if (s->decodes() == decodes) order.push_back(s.get());
    }
  }
  StepPlan plan;
  for (Sequence* s : order) {
    if (!s->holds_cache()) continue;  // preempted for an older one
    const bool decodes = s->decodes();
    if (!decodes && plan.rows >= limits_.step_rows) continue;
    const std::size_t count = decodes ? 1 : chunk(*s, limits_.step_rows - plan.rows);
    const std::size_t growth = store_.sequence_bytes(length(s->computed() + count)) -
                               store_.sequence_bytes(s->state.length);
    if (!make_room(growth, *s, plan)) {
      preempt(*s);
      continue;
    }
    planned_bytes_ += growth;
    plan.segments.push_back(
        {.sequence = s,
         .count = count,
         .samples = count == s->pending(),
         .every_row = s->request.prompt_logprobs && s->result.output_ids.empty()});
    plan.rows += count;
  }
  return plan;
}

void Scheduler::advance(const StepPlan& plan) {
  planned_bytes_ = 0;
  for (const StepSegment& segment : plan.segments) {
    Sequence& s = *segment.sequence;
    if (s.keep_at.erase(s.computed()) == 0) continue;
    if (!room_for(store_.fork_bytes(s.state.length))) continue;
    prefixes_.insert(std::span(s.tokens).first(s.computed()), store_.fork(s.state));
  }
}

std::unique_ptr<Sequence> Scheduler::remove(RequestId id, bool keep) {
  for (auto* queue : {&running_, &waiting_}) {
    const auto at = find_id(*queue, id);
    if (at == queue->end()) continue;
    Owned s = std::move(*at);
    queue->erase(at);
    if (!s->holds_cache()) return s;
    if (keep && caches(*s) && s->computed() >= kMinGain) {
      prefixes_.insert(std::span(s->tokens).first(s->computed()), std::move(s->state));
      s->state = {};
    } else {
      store_.close(s->state);
    }
    return s;
  }
  return nullptr;
}

}  // namespace cupel
