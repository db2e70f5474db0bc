// Both benchmarks against our own server over a small checkpoint.
#include "server/served.h"

#include "load/streams.h"

#include "cupel/load/load_reply.h"
#include "cupel/load/one_batch.h"
#include "cupel/load/serving_metrics.h"

namespace cupel::test {
namespace {

BenchTarget target_of(Served& server, Api api) {
  return find_bench_target(checked_settings(server->url(), "", 60), api, "");
}

TEST(BenchServed, OneBatch) {
  Served server;
  for (const Api api : {Api::kGenerate, Api::kCompletions}) {
    SCOPED_TRACE(api_name(api));
    const BenchTarget target = target_of(server, api);
    EXPECT_EQ(target.identity.model, "tiny");
    HttpConnection connection(target.http);
    const ServerFacts facts = ask_facts(connection);
    ASSERT_TRUE(facts.vocabulary);
    EXPECT_TRUE(facts.max_running && facts.token_capacity);
    OneBatchBench bench(target, {.vocabulary = *facts.vocabulary});
    // Twice the same prompts: the flush before leaves nothing to hit.
    for (int i = 0; i < 2; ++i) {
      const OneBatchResult r = bench.run({3, 300, 5}, 0, 0);
      ASSERT_TRUE(r.figures) << r.reason << ": " << r.error;
      EXPECT_TRUE(r.cache_flushed);
      EXPECT_GT(r.figures->latency, r.figures->last_ttft);
      EXPECT_GE(r.tokens_per_event, 1);
      EXPECT_EQ(r.cache_hit_rate.value_or(0), 0);
    }
  }
}

TEST(BenchServed, ServingCountsWhatTheServerCounts) {
  Served server;
  double counted = 0;
  for (const Api api : {Api::kGenerate, Api::kCompletions, Api::kChat}) {
    SCOPED_TRACE(api_name(api));
    const BenchTarget target = target_of(server, api);
    HttpConnection connection(target.http);
    ServingLoad load;
    load.num_prompts = 24;
    load.request_rate = 400;
    load.workload = {
        .input_len = 20,
        .output_len = 6,
        .range_ratio = 0.5,
        .vocabulary = api == Api::kChat ? 0 : ask_facts(connection).vocabulary.value()};
    const ServingRun run = run_serving(target, load, {});
    const ServingMetrics m = serving_metrics(run.requests, run.duration);
    EXPECT_EQ(m.completed, 24);
    EXPECT_EQ(m.short_outputs, 0);
    std::int64_t asked_in = 0, asked_out = 0;
    for (const ServedRequest& r : run.requests) {
      EXPECT_TRUE(r.completed()) << r.error;
      asked_in += r.input_len;
      asked_out += r.output_len;
    }
    EXPECT_EQ(m.total_output, asked_out);
    // A chat has a template around its letters.
    if (api == Api::kChat) {
      EXPECT_GT(m.total_input, asked_in);
    } else {
      EXPECT_EQ(m.total_input, asked_in);
    }
    counted += static_cast<double>(m.total_output);
    EXPECT_TRUE(
        eventually([&] { return server.metric("sglang:generation_tokens_total") == counted; }));
  }
}

}  // namespace
}  // namespace cupel::test
