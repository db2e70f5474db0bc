#include "cupel/load/one_batch.h"

#include <cmath>
#include <set>

#include "load/streams.h"
#include "support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/load/load_reply.h"
#include "cupel/load/one_batch_report.h"

namespace cupel {
namespace {

using nlohmann::json;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using testing::HasSubstr;

TEST(OneBatch, FiguresByHand) {
  const OneBatchFigures f =
      one_batch_figures({.batch_size = 4, .input_len = 100, .output_len = 20}, 0.5, 2.5);
  EXPECT_DOUBLE_EQ(f.latency, 2.5);
  EXPECT_DOUBLE_EQ(f.last_ttft, 0.5);
  EXPECT_DOUBLE_EQ(f.input_throughput, 800);
  EXPECT_DOUBLE_EQ(f.output_throughput, 40);
  EXPECT_DOUBLE_EQ(f.overall_throughput, 192);
  EXPECT_DOUBLE_EQ(f.itl_ms, 100);
  const OneBatchFigures one =
      one_batch_figures({.batch_size = 4, .input_len = 100, .output_len = 1}, 0.5, 0.5);
  EXPECT_TRUE(std::isnan(one.output_throughput) && std::isnan(one.itl_ms));
  EXPECT_DOUBLE_EQ(one.overall_throughput, 808);
}

// Every sequence's tokens one by one, the sequences in turn; `cached` of the prompt tokens.
FakeReply answer_batch(const FakeRequest& request, int missing = 0, int cached = 0) {
  if (request.path == "/flush_cache") return {.body = "ok", .content_type = "text/plain"};
  std::vector<json> parts;
  const json& prompts = request.json["input_ids"];
  const int tokens = test::asked_tokens(request.json) - missing;
  for (int token = 1; token <= tokens; ++token) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      parts.push_back(test::generate_event(token, token == tokens,
                                           static_cast<int>(prompts[i].size()), static_cast<int>(i),
                                           cached));
    }
  }
  return {.pieces = test::events(parts)};
}

FakeReply tell_limits(const FakeRequest& request) {
  if (request.path != "/server_info") return FakeServer::models(request);
  return {.body = json{{"version", "1"},
                       {"vocab_size", 64},
                       {"dp_size", 2},
                       {"internal_states",
                        {{{"last_gen_throughput", 123.5},
                          {"avg_spec_accept_length", 2.5},
                          {"effective_max_running_requests_per_dp", 4},
                          {"memory_usage", {{"token_capacity", 100}}}}}}}
                      .dump()};
}

TEST(OneBatch, OneRequestHoldsAllPrompts) {
  FakeServer server([](const FakeRequest& r) { return answer_batch(r, 0, 3); }, tell_limits);
  const BenchTarget target = test::bench_target(server, Api::kGenerate);
  OneBatchBench bench(target, {.vocabulary = 64, .seed = 42});
  const OneBatchResult r = bench.run({.batch_size = 3, .input_len = 6, .output_len = 4}, 0, 0);
  ASSERT_TRUE(r.figures) << r.reason << r.error;
  EXPECT_TRUE(r.cache_flushed);
  EXPECT_GT(r.figures->last_ttft, 0);
  EXPECT_GE(r.figures->latency, r.figures->last_ttft);
  EXPECT_DOUBLE_EQ(r.tokens_per_event, 1);
  EXPECT_EQ(r.cache_hit_rate, 0.5);
  EXPECT_EQ(r.last_gen_throughput, 123.5);
  EXPECT_EQ(r.acc_length, 2.5);
  const auto posts = server.posts();
  ASSERT_EQ(posts.size(), 2U);
  EXPECT_EQ(posts[0].path, "/flush_cache");
  const json& body = posts[1].json;
  ASSERT_EQ(body["input_ids"].size(), 3U);
  for (const json& ids : body["input_ids"]) {
    EXPECT_EQ(ids.size(), 6U);
    for (const json& id : ids) EXPECT_TRUE(id >= 0 && id < 64);
  }
  EXPECT_EQ(body["sampling_params"],
            (json{{"temperature", 0}, {"max_new_tokens", 4}, {"ignore_eos", true}}));
}

TEST(OneBatch, NoPromptIsThatOfAnotherCaseOrRepeat) {
  FakeServer server([](const FakeRequest& r) { return answer_batch(r); });
  const BenchTarget target = test::bench_target(server, Api::kGenerate);
  OneBatchBench bench(target, {.vocabulary = 1000, .seed = 42});
  for (const int repeat : {-1, 0, 1}) {
    for (const int number : {0, 1}) bench.run({2, 16, 1}, repeat, number);
  }
  std::multiset<std::string> prompts;
  for (const FakeRequest& post : server.posts()) {
    if (post.path != "/generate") continue;
    for (const json& ids : post.json["input_ids"]) prompts.insert(ids.dump());
  }
  EXPECT_EQ(prompts.size(), 12U);
  EXPECT_EQ(std::set(prompts.begin(), prompts.end()).size(), 12U);
}

TEST(OneBatch, WhatTheServerDoesNotHoldIsSkipped) {
  FakeServer server([](const FakeRequest& r) { return answer_batch(r); }, tell_limits);
  const BenchTarget target = test::bench_target(server, Api::kGenerate);
  OneBatchBench bench(target, {.vocabulary = 64});
  EXPECT_THAT(bench.run({9, 1, 1}, 0, 0).skipped, HasSubstr("runs 8 requests"));
  EXPECT_THAT(bench.run({8, 10, 3}, 0, 0).skipped, HasSubstr("104 tokens, the server holds 100"));
  EXPECT_EQ(bench.run({8, 10, 2}, 0, 0).skipped, "");
  EXPECT_EQ(server.posts().size(), 2U);
}

TEST(OneBatch, AnswersOfAnotherLengthAreNoResult) {
  FakeServer server([](const FakeRequest& r) { return answer_batch(r, 1); });
  const BenchTarget target = test::bench_target(server, Api::kGenerate);
  OneBatchBench bench(target, {.vocabulary = 64});
  const OneBatchResult r = bench.run({2, 5, 4}, 0, 0);
  EXPECT_FALSE(r.figures);
  EXPECT_EQ(r.reason, "other lengths");
  EXPECT_THAT(r.error, HasSubstr("2 x 4 output tokens were asked for, the server counts 6"));
}

TEST(OneBatch, FailuresOfTheServer) {
  FakeServer busy([](const FakeRequest&) { return FakeReply{.status = 503, .body = "full"}; });
  const BenchTarget target = test::bench_target(busy, Api::kGenerate);
  OneBatchBench bench(target, {.vocabulary = 64});
  const OneBatchResult r = bench.run({2, 5, 4}, 0, 0);
  EXPECT_EQ(r.reason, "status 503");
  EXPECT_FALSE(r.cache_flushed);
  busy.stop();
  EXPECT_EQ(bench.run({2, 5, 4}, 0, 1).reason, kNoConnectionReason);
  const BenchTarget chat = test::bench_target(busy, Api::kChat);
  test::expect_input_error([&] { OneBatchBench(chat, {.vocabulary = 64}); }, {"--api", "chat"});
}

OneBatchResult result(int batch, double latency, bool throw_away = false) {
  OneBatchResult r;
  r.sizes = {.batch_size = batch, .input_len = 100, .output_len = 20};
  r.throw_away = throw_away;
  r.figures = one_batch_figures(r.sizes, 0.5, latency);
  r.tokens_per_event = 1;
  r.cache_hit_rate = 0;
  return r;
}

TEST(OneBatchReport, RecordsHaveSglangsNames) {
  OneBatchResult failed = result(1, 1);
  failed.figures.reset();
  failed.reason = "timeout";
  failed.error = "late";
  for (const OneBatchResult& r : {result(1, 2.5), failed}) {
    const json record = json::parse(one_batch_record(r, {}, "nightly"));
    for (const char* key : {"run_name",
                            "batch_size",
                            "input_len",
                            "output_len",
                            "latency",
                            "input_throughput",
                            "output_throughput",
                            "overall_throughput",
                            "last_ttft",
                            "last_gen_throughput",
                            "acc_length",
                            "cache_hit_rate",
                            "profile_link",
                            "url",
                            "model",
                            "server",
                            "build",
                            "seed",
                            "prompt_seed",
                            "repeat"}) {
      EXPECT_TRUE(record.contains(key)) << key;
    }
    EXPECT_EQ(record["latency"], r.figures ? json(2.5) : json());
    EXPECT_EQ(record["reason"], r.reason);
  }
}

TEST(OneBatchReport, RowsAreMeansWithoutThrowAways) {
  OneBatchResult failed = result(2, 1);
  failed.figures.reset();
  failed.reason = "timeout";
  failed.error = "late";
  const std::vector<OneBatchResult> results = {result(1, 9, true), result(1, 2.5), result(2, 4.5),
                                               result(1, 9, true), result(1, 2.5), failed};
  const std::vector<OneBatchRow> rows = one_batch_rows(results);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].repeats.size(), 2U);
  EXPECT_EQ(rows[1].repeats.size(), 1U);
  const std::string table = one_batch_table(rows);
  EXPECT_THAT(table, HasSubstr("2.500 +- 0.000"));
  EXPECT_THAT(table, HasSubstr("batch 2: timeout: late"));
  // Costs at 2 dollars an hour: 200 tok/s in at 70 %, 10 tok/s out.
  EXPECT_THAT(
      one_batch_markdown(rows, 2),
      HasSubstr("| 1 | 100 | 2.50 | 200.00 | 10.00 | n/a | 100.00 | 3.97 | 55.56 | 0.0000 |"));
  EXPECT_THAT(one_batch_markdown(rows, std::nullopt), HasSubstr("| 100.00 | n/a | n/a | 0.0000 |"));
  const json summary = json::parse(one_batch_summary(rows[0], {}, "nightly"));
  EXPECT_EQ(summary["figures"]["latency"]["mean"], 2.5);
  EXPECT_EQ(summary["repeats"], 2);
}

}  // namespace
}  // namespace cupel
