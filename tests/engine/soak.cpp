#include "engine/soak.h"

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "engine/engine_support.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"
#include "cupel/engine/engine_thread.h"

namespace cupel::test {
namespace {

struct Counts {
  std::atomic<int> submitted = 0, ended = 0, refused = 0, cancelled = 0, queue_full = 0;
};

class Client {
 public:
  Client(EngineThread& engine, Counts& counts, std::uint32_t seed)
      : engine_(engine), counts_(counts), random_(seed) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      one();
      if (below(10) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(below(20)));
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return random_() % n; }

  GenerationRequest random_request() {
    GenerationRequest r;
    const std::uint32_t kind = below(20);
    // Some of the few prompts that share a beginning, some of their own; a few are long.
    const std::size_t length = 1 + (kind == 0 ? below(500) : below(60));
    r.prompt_ids = text_ids(below(3) == 0 ? below(300) : 0, length);
    r.max_new_tokens = 1 + static_cast<int>(kind == 1 ? below(300) : below(12));
    r.ignore_eos = below(2) == 0;
    r.sampling.temperature = below(2) == 0 ? 0.0F : 1.0F;
    r.sampling.seed = random_();
    r.sampling.top_k = static_cast<int>(below(3));
    r.sampling.presence_penalty = below(4) == 0 ? 0.5F : 0.0F;
    if (below(4) == 0) r.stop = {"e", " the"};
    if (below(8) == 0) r.top_logprobs = 2;
    r.prompt_logprobs = below(16) == 0;
    return r;
  }

  static void spoil(GenerationRequest& r, std::uint32_t how) {
    switch (how) {
      case 0:
        r.prompt_ids.clear();
        break;
      case 1:
        r.prompt_ids.back() = 100000;
        break;
      case 2:
        r.max_new_tokens = 0;
        break;
      case 3:
        r.sampling.top_p = 2;
        break;
      case 4:
        r.stop = {""};
        break;
      default:
        r.max_new_tokens = 100000000;
    }
  }

  void one() {
    GenerationRequest r = random_request();
    const bool bad = below(12) == 0;
    if (bad) spoil(r, below(6));
    const std::uint32_t cancel = below(8);  // 0: at once, 1: after some tokens
    auto ended = std::make_shared<std::atomic<int>>(0);
    auto id = std::make_shared<std::atomic<RequestId>>(0);
    RequestCallbacks callbacks;
    // Requests outlive their client: only what outlives both is held.
    callbacks.on_token = [&engine = engine_, id, cancel,
                          left = static_cast<int>(below(5))](const TokenEvent&) mutable {
      if (cancel == 1 && left-- == 0) engine.cancel(id->load());
    };
    callbacks.on_done = [&counts = counts_, ended, r](const Generation& g) {
      EXPECT_EQ(ended->fetch_add(1), 0);
      ++counts.ended;
      EXPECT_NE(g.finish, FinishReason::kError) << g.error;
      EXPECT_LE(g.output_ids.size(), static_cast<std::size_t>(r.max_new_tokens));
      if (g.finish == FinishReason::kCancelled) ++counts.cancelled;
    };
    try {
      id->store(engine_.submit(r, callbacks));
      ++counts_.submitted;
      EXPECT_FALSE(bad);
      if (cancel == 0) engine_.cancel(id->load());
    } catch (const InputError&) {
      EXPECT_TRUE(bad);
      ++counts_.refused;
    } catch (const QueueFull&) {
      ++counts_.queue_full;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  EngineThread& engine_;
  Counts& counts_;
  std::mt19937 random_;
};

}  // namespace

void soak(const EngineOptions& options, int requests, int threads, std::uint32_t seed) {
  Engine engine(options);
  Counts counts;
  {
    EngineThread service(engine);
    std::vector<std::jthread> clients;
    for (int t = 0; t < threads; ++t) {
      clients.emplace_back([&, t] {
        Client(service, counts, seed + static_cast<std::uint32_t>(t)).run(requests / threads);
      });
    }
    clients.clear();
    service.stop(true);
    EXPECT_EQ(service.stats().running + service.stats().waiting, 0U);
  }
  EXPECT_EQ(counts.ended, counts.submitted);
  EXPECT_EQ(counts.submitted + counts.refused + counts.queue_full, requests / threads * threads);
  EXPECT_GT(counts.refused, 0);
  EXPECT_GT(counts.cancelled, 0);
  const EngineStats stats = engine.stats();
  EXPECT_GT(stats.cached_tokens, 0U);
  EXPECT_GT(stats.evictions + stats.preemptions, 0U);
  EXPECT_LE(stats.cache_bytes, stats.max_cache_bytes);
  EXPECT_TRUE(engine.network().backend().owners_agree());
  engine.flush_prefixes();
  EXPECT_EQ(engine.network().cache_bytes(), 0U);
  EXPECT_TRUE(engine.network().backend().owners_agree());
}

}  // namespace cupel::test
