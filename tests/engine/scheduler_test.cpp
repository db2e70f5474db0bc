#include "cupel/engine/scheduler.h"

#include <map>
#include <random>

#include "engine/fake_store.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::FakeStore;
using testing::ElementsAre;

std::vector<std::int32_t> tokens(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> ids(count, 7);
  ids[0] = first;
  return ids;
}

// A network that gives token 5 each time.
class Machine {
 public:
  explicit Machine(SchedulerLimits limits) : scheduler(limits, store) {}

  RequestId submit(std::vector<std::int32_t> prompt, int max_new = 4) {
    GenerationRequest request;
    request.prompt_ids = std::move(prompt);
    request.max_new_tokens = max_new;
    scheduler.submit(
        std::make_unique<Sequence>(++last, std::move(request), RequestCallbacks{}, Clock::now()));
    return last;
  }

  // Plans and computes a step; returns what it computed, as (request, tokens).
  std::vector<std::pair<RequestId, std::size_t>> step() {
    const StepPlan plan = scheduler.plan();
    std::vector<std::pair<RequestId, std::size_t>> computed;
    std::size_t rows = 0;
    for (const StepSegment& s : plan.segments) {
      EXPECT_GT(s.count, 0U);
      computed.emplace_back(s.sequence->id, s.count);
      rows += s.count;
      store.advance(s.sequence->state, s.count);
    }
    EXPECT_EQ(rows, plan.rows);
    scheduler.advance(plan);
    for (const StepSegment& s : plan.segments) {
      EXPECT_EQ(s.samples, s.sequence->pending() == 0);
      if (!s.samples) continue;
      s.sequence->tokens.push_back(5);
      const std::size_t produced =
          s.sequence->tokens.size() - s.sequence->request.prompt_ids.size();
      if (produced < static_cast<std::size_t>(s.sequence->request.max_new_tokens)) continue;
      const auto ended = scheduler.remove(s.sequence->id, true);
      done[ended->id] = ended->tokens.size();
      preemptions += ended->result.preemptions;
    }
    if (scheduler.limits().max_cache_bytes > 0) {
      EXPECT_LE(store.cache_bytes(), scheduler.limits().max_cache_bytes);
    }
    return computed;
  }

  FakeStore store;
  Scheduler scheduler;
  std::map<RequestId, std::size_t> done;  // tokens of those that ended
  RequestId last = 0;
  int preemptions = 0;
};

using Computed = std::vector<std::pair<RequestId, std::size_t>>;

TEST(Scheduler, DecodesFirstThenFillsWithPromptChunks) {
  Machine m({.step_rows = 100, .prefill_chunk = 60});
  m.submit(tokens(10, 1));
  EXPECT_EQ(m.step(), (Computed{{1, 10}}));
  m.submit(tokens(70, 2));
  m.submit(tokens(200, 3));
  m.submit(tokens(5, 4));
  EXPECT_EQ(m.step(), (Computed{{1, 1}, {2, 60}, {3, 39}}));
  EXPECT_EQ(m.step(), (Computed{{1, 1}, {2, 10}, {3, 60}, {4, 5}}));
}

TEST(Scheduler, AWholePromptIsOneChunk) {
  Machine m({.step_rows = 100, .prefill_chunk = 0});
  m.submit(tokens(300, 1));
  m.submit(tokens(20, 2));
  EXPECT_EQ(m.step(), (Computed{{1, 300}}));
  EXPECT_EQ(m.step(), (Computed{{1, 1}, {2, 20}}));
}

TEST(Scheduler, RunsNoMoreThanItMayAndRefusesWhatCannotWait) {
  Machine m({.max_running = 2, .max_waiting = 3});
  for (int i = 0; i < 3; ++i) m.submit(tokens(4, i), 1);
  EXPECT_THROW(m.submit(tokens(4, 9)), QueueFull);
  EXPECT_EQ(m.step().size(), 2U);
  EXPECT_EQ(m.step().size(), 1U);
  EXPECT_TRUE(m.scheduler.idle());
}

TEST(Scheduler, NobodyOvertakesARequestThatWaitsForRoom) {
  // A state of 8 bytes and 4 a page of 256: room for one sequence of three pages and a bit.
  Machine m({.max_cache_bytes = 34, .prefix_cache = false});
  m.submit(tokens(500, 1), 300);
  m.submit(tokens(700, 2), 2);
  m.submit(tokens(5, 3), 2);
  EXPECT_EQ(m.step(), (Computed{{1, 500}}));
  while (!m.done.contains(1)) EXPECT_EQ(m.step().size(), 1U);
  EXPECT_EQ(m.preemptions, 0);
  m.step();
  while (!m.scheduler.idle()) m.step();
  EXPECT_EQ(m.done, (std::map<RequestId, std::size_t>{{1, 800}, {2, 702}, {3, 7}}));
}

TEST(Scheduler, TheYoungestGivesItsCacheUpAndIsComputedAgain) {
  Machine m({.max_cache_bytes = 2 * (8 + 4) + 2 * 4, .prefix_cache = false});
  m.submit(tokens(250, 1), 600);
  m.submit(tokens(250, 2), 600);
  while (!m.scheduler.idle()) m.step();
  EXPECT_GT(m.preemptions, 0);
  EXPECT_EQ(m.done, (std::map<RequestId, std::size_t>{{1, 850}, {2, 850}}));
  EXPECT_EQ(m.store.cache_bytes(), 0U);
}

// Prompts that begin alike: the first computes the beginning, the others wait a step for it.
TEST(Scheduler, ASharedBeginningIsComputedOnce) {
  Machine m({.step_rows = 1000, .prefill_chunk = 1000});
  for (int i = 0; i < 5; ++i) {
    auto ids = tokens(100, 1);
    ids[80 + static_cast<std::size_t>(i % 2)] = 50 + i;
    m.submit(ids);
  }
  EXPECT_EQ(m.step(), (Computed{{1, 80}}));  // cut where the next one parts from it
  EXPECT_EQ(m.step(), (Computed{{1, 20}, {2, 20}, {3, 20}, {4, 20}, {5, 20}}));
  EXPECT_EQ(m.scheduler.counts().cached_tokens, 4U * 80);
}

TEST(Scheduler, AnotherTurnGoesOnFromTheLast) {
  Machine m({});
  m.submit(tokens(60, 1), 10);
  while (!m.scheduler.idle()) m.step();
  auto next = tokens(60, 1);
  next.insert(next.end(), 10, 5);
  next.insert(next.end(), {8, 8, 8});
  m.submit(next, 1);
  EXPECT_EQ(m.step(), (Computed{{2, 4}}));  // the last output token was never computed
}

TEST(Scheduler, KeptPrefixesGoWhereRoomRunsOut) {
  Machine m({.max_cache_bytes = 40});
  for (int i = 0; i < 6; ++i) {
    m.submit(tokens(300, i), 2);
    while (!m.scheduler.idle()) m.step();
  }
  EXPECT_EQ(m.preemptions, 0);
  EXPECT_GT(m.scheduler.counts().evictions, 0U);
  EXPECT_EQ(m.done.size(), 6U);
}

// Requests that come, are cancelled, share beginnings and outgrow the cache, in random histories:
// the limit holds after every step (Machine checks), every request ends with all its tokens, and
// nothing is held at the end.
TEST(Scheduler, EverythingEndsInAnyHistory) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return random() % n; };
    Machine m({.max_running = 1 + below(6),
               .max_waiting = 1000,
               .step_rows = 16 + below(600),
               .prefill_chunk = below(3) == 0 ? 0 : 1 + below(300),
               .max_cache_bytes = 8 + 4 * 5 + below(80),
               .prefix_cache = below(4) != 0});
    std::map<RequestId, std::size_t> expected;
    for (int i = 0; i < 30; ++i) {
      auto ids = tokens(1 + below(700), static_cast<std::int32_t>(below(3)));
      ids[below(static_cast<unsigned>(ids.size()))] = static_cast<std::int32_t>(below(4));
      const int max_new = 1 + static_cast<int>(below(500));
      const std::size_t total = ids.size() + static_cast<std::size_t>(max_new);
      expected[m.submit(std::move(ids), max_new)] = total;
      for (unsigned s = below(40); s > 0; --s) m.step();
      if (below(5) == 0) {
        const RequestId id = 1 + below(static_cast<unsigned>(m.last));
        if (m.scheduler.remove(id, below(2) == 0)) expected.erase(id);
      }
    }
    for (int steps = 0; !m.scheduler.idle(); ++steps) {
      ASSERT_LT(steps, 100000) << "seed " << seed;
      ASSERT_FALSE(m.step().empty()) << "seed " << seed;
    }
    EXPECT_EQ(m.done, expected) << "seed " << seed;
    m.scheduler.prefixes().clear();
    EXPECT_EQ(m.store.cache_bytes(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cupel
