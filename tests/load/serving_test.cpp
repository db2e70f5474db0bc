// Whole runs against scripted servers.
#include "cupel/load/serving.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "load/streams.h"
#include "support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/load/load_reply.h"

namespace cupel {
namespace {

using nlohmann::json;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

ServingLoad small_load(int prompts) {
  ServingLoad load;
  load.num_prompts = prompts;
  load.workload = {.input_len = 6, .output_len = 3, .range_ratio = 1, .vocabulary = 50};
  return load;
}

// Waits until `count` requests are there.
class Barrier {
 public:
  explicit Barrier(int count) : count_(count) {}
  // False if they are not within ten seconds.
  bool meet() {
    std::unique_lock lock(mutex_);
    ++there_;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return there_ >= count_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int there_ = 0;
  int count_;
};

TEST(Serving, ArrivalsDoNotWaitForAnswers) {
  constexpr int kCount = 60;
  Barrier barrier(kCount);
  std::atomic<bool> all_there = true;
  // No answer before the last request has come: a closed loop would never end.
  FakeServer server([&](const FakeRequest& request) {
    if (!barrier.meet()) all_there = false;
    return test::stream_answer(request);
  });
  ServingLoad load = small_load(kCount);
  load.request_rate = 2000;
  const ServingRun run = run_serving(test::bench_target(server, Api::kGenerate), load, {});
  EXPECT_TRUE(all_there);
  ASSERT_EQ(run.requests.size(), static_cast<std::size_t>(kCount));
  const double last_due = run.requests.back().due;
  for (const ServedRequest& r : run.requests) {
    EXPECT_TRUE(r.completed()) << r.error;
    EXPECT_EQ(r.due, r.scheduled);
    // Times count from when a request was due, whenever the client got to it.
    EXPECT_GE(r.sent, r.due);
    ASSERT_TRUE(r.first_token);
    EXPECT_GE(*r.first_token, last_due);
    EXPECT_GE(r.end, *r.first_token);
    EXPECT_LE(r.end, run.duration);
    EXPECT_EQ(r.completion_tokens, 3);
    EXPECT_EQ(r.gaps.size(), 2U);
  }
}

TEST(Serving, AThousandConnectionsAtOnce) {
  constexpr int kCount = 1000;
  Barrier barrier(kCount);
  std::atomic<bool> all_there = true;
  FakeServer server([&](const FakeRequest& request) {
    if (!barrier.meet()) all_there = false;
    return test::stream_answer(request);
  });
  int done = 0;
  const ServingRun run =
      run_serving(test::bench_target(server, Api::kGenerate), small_load(kCount),
                  {.interrupted = {}, .done = [&](const ServedRequest&) { ++done; }});
  EXPECT_TRUE(all_there);
  EXPECT_EQ(done, kCount);
  for (const ServedRequest& r : run.requests) EXPECT_TRUE(r.completed()) << r.error;
}

TEST(Serving, ConcurrencyIsLimitedAndConnectionsAreKept) {
  std::atomic<int> under_way = 0, most = 0;
  FakeServer server([&](const FakeRequest& request) {
    const int now = ++under_way;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --under_way;
    return test::stream_answer(request);
  });
  ServingLoad load = small_load(30);
  load.max_concurrency = 3;
  const ServingRun run = run_serving(test::bench_target(server, Api::kCompletions), load, {});
  EXPECT_LE(most, 3);
  std::set<int> connections;
  for (const FakeRequest& request : server.posts()) connections.insert(request.connection);
  EXPECT_LE(connections.size(), 3U);
  for (const ServedRequest& r : run.requests) {
    EXPECT_TRUE(r.completed()) << r.error;
    EXPECT_GE(r.due, r.scheduled);
  }
  // The last ones had to wait for a place.
  EXPECT_GT(run.requests.back().due, run.requests.back().scheduled);
}

TEST(Serving, PromptsDependOnTheSeedAndNoneComesTwice) {
  FakeServer server(test::stream_answer);
  const auto prompts_of = [&](std::uint64_t seed) {
    const std::size_t before = server.posts().size();
    ServingLoad load = small_load(20);
    load.seed = seed;
    run_serving(test::bench_target(server, Api::kGenerate), load, {});
    std::set<std::string> prompts;
    const auto posts = server.posts();
    for (std::size_t i = before; i < posts.size(); ++i) {
      prompts.insert(posts[i].json["input_ids"].dump());
    }
    return prompts;
  };
  const auto first = prompts_of(1);
  EXPECT_EQ(first.size(), 20U);
  EXPECT_EQ(prompts_of(1), first);
  auto both = prompts_of(2);
  both.insert(first.begin(), first.end());
  EXPECT_EQ(both.size(), 40U);
}

TEST(Serving, FailuresAreKeptByReason) {
  FakeServer server([](const FakeRequest& request) -> FakeReply {
    auto pieces = test::events(test::token_events(request.path, test::asked_tokens(request.json)));
    switch (request.number % 5) {
      case 0:
        return {.status = 429, .body = "slow down"};
      case 1:
        return {.status = 503, .body = "full"};
      case 2:
        pieces.resize(2);
        return {.pieces = pieces, .cut = true};
      case 3:
        return {.pieces = {"data: {]\n\n"}};
      default:
        return {.pieces = pieces};
    }
  });
  ServingLoad load = small_load(25);
  load.max_concurrency = 1;
  const ServingRun run = run_serving(test::bench_target(server, Api::kChat), load, {});
  EXPECT_FALSE(run.lost);
  std::map<std::string, int> reasons;
  for (const ServedRequest& r : run.requests) ++reasons[r.reason];
  EXPECT_EQ(reasons, (std::map<std::string, int>{{"", 5},
                                                 {"status 429", 5},
                                                 {"status 503", 5},
                                                 {"connection cut", 5},
                                                 {"malformed reply", 5}}));
  // Nothing is asked twice.
  EXPECT_EQ(server.posts().size(), 25U);
}

TEST(Serving, ADeadServerEndsTheRun) {
  FakeServer* address = nullptr;
  std::atomic<int> asked = 0;
  FakeServer server([&](const FakeRequest& request) { return test::stream_answer(request); });
  address = &server;
  ServingLoad load = small_load(200);
  load.max_concurrency = 2;
  const ServingRun run = run_serving(test::bench_target(server, Api::kGenerate), load,
                                     {.interrupted = {}, .done = [&](const ServedRequest&) {
                                        if (++asked == 5) address->stop();
                                      }});
  EXPECT_TRUE(run.lost);
  EXPECT_TRUE(run.requests.front().completed());
  EXPECT_EQ(run.requests.back().reason, kNotSentReason);
  EXPECT_THAT(run.requests.back().error, testing::HasSubstr("no connection"));
  int done = 0;
  for (const ServedRequest& r : run.requests) done += static_cast<int>(r.completed());
  EXPECT_GE(done, 5);
}

TEST(Serving, AWishToEndKeepsWhatIsThere) {
  std::atomic<bool> wish = false;
  FakeServer server(test::stream_answer);
  ServingLoad load = small_load(300);
  load.request_rate = 10;  // half a minute, if it were not ended
  int done = 0;
  const ServingRun run = run_serving(test::bench_target(server, Api::kGenerate), load,
                                     {.interrupted = [&] { return wish.load(); },
                                      .done =
                                          [&](const ServedRequest& r) {
                                            ++done;
                                            if (r.completed()) wish = true;
                                          }});
  EXPECT_TRUE(run.interrupted);
  EXPECT_FALSE(run.lost);
  EXPECT_EQ(done, 300);
  EXPECT_TRUE(run.requests.front().completed());
  EXPECT_EQ(run.requests.back().reason, kNotSentReason);
}

TEST(Serving, RefusesWhatIsNoLoad) {
  using test::expect_input_error;
  ServingLoad load = small_load(0);
  expect_input_error([&] { check_load(load); }, {"--num-prompts"});
  load = small_load(1);
  load.request_rate = 0;
  expect_input_error([&] { check_load(load); }, {"--request-rate"});
  load.request_rate = NAN;
  expect_input_error([&] { check_load(load); }, {"--request-rate"});
  load.request_rate = 1;
  load.max_concurrency = -1;
  expect_input_error([&] { check_load(load); }, {"--max-concurrency"});
}

}  // namespace
}  // namespace cupel
