#include "cupel/load/serving_metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/load/serving_report.h"

namespace cupel {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ServedRequest request(double due, double first, double end, std::vector<double> gaps, int tokens) {
  ServedRequest r;
  r.scheduled = due;
  r.due = due;
  r.sent = due;
  r.first_token = first;
  r.end = end;
  r.events = static_cast<int>(gaps.size()) + 1;
  r.gaps = std::move(gaps);
  r.input_len = 10;
  r.output_len = tokens;
  r.prompt_tokens = 10;
  r.completion_tokens = tokens;
  return r;
}

// Three answers and two failures in 4 seconds.
std::vector<ServedRequest> five() {
  std::vector<ServedRequest> all = {request(0, 0.5, 1.5, {0.25, 0.75}, 3),
                                    request(1, 1.25, 2.25, {1.0}, 2), request(2, 3.0, 3.0, {}, 1)};
  all[0].cached_tokens = 4;
  all[1].scheduled = 0.25;  // waited for a place
  all[1].sent = 1.125;      // the client was late
  all[2].output_len = 6;    // ended early
  ServedRequest failed = request(3, 3.5, 4, {0.1}, 2);
  failed.reason = "status 503";
  failed.error = "full";
  all.push_back(failed);
  failed.reason = "timeout";
  all.push_back(failed);
  return all;
}

TEST(ServingMetrics, ByHand) {
  const ServingMetrics m = serving_metrics(five(), 4);
  EXPECT_EQ(m.completed, 3);
  EXPECT_EQ(m.failed, (std::map<std::string, int>{{"status 503", 1}, {"timeout", 1}}));
  EXPECT_EQ(m.failures(), 2);
  EXPECT_EQ(m.total_input, 30);
  EXPECT_EQ(m.cached_input, 4);
  EXPECT_EQ(m.total_output, 6);
  EXPECT_EQ(m.short_outputs, 1);
  EXPECT_DOUBLE_EQ(m.request_throughput, 0.75);
  EXPECT_DOUBLE_EQ(m.input_throughput, 7.5);
  EXPECT_DOUBLE_EQ(m.output_throughput, 1.5);
  EXPECT_DOUBLE_EQ(m.total_throughput, 9);
  // TTFT 500, 250 and 1000 ms; end to end 1500, 1250 and 1000.
  EXPECT_DOUBLE_EQ(m.ttft.mean, 1750.0 / 3);
  EXPECT_DOUBLE_EQ(m.ttft.median, 500);
  EXPECT_DOUBLE_EQ(m.ttft.p99, 990);
  EXPECT_DOUBLE_EQ(m.e2e.mean, 1250);
  EXPECT_DOUBLE_EQ(m.concurrency, 3.75 / 4);
  // TPOT: 1000 / 2 and 1000 / 1; the third has one token.
  EXPECT_EQ(m.tpot.count, 2U);
  EXPECT_DOUBLE_EQ(m.tpot.mean, 750);
  EXPECT_EQ(m.itl.count, 3U);
  EXPECT_DOUBLE_EQ(m.itl.median, 750);
  EXPECT_DOUBLE_EQ(m.itl.largest, 1000);
  EXPECT_DOUBLE_EQ(m.lag.largest, 125);
  EXPECT_DOUBLE_EQ(m.wait.largest, 750);
  EXPECT_DOUBLE_EQ(m.tokens_per_event, 1);
}

TEST(ServingMetrics, OfNoAnswerThereIsNone) {
  std::vector<ServedRequest> failed = five();
  failed.erase(failed.begin(), failed.begin() + 3);
  const ServingMetrics m = serving_metrics(failed, 4);
  EXPECT_EQ(m.completed, 0);
  EXPECT_EQ(m.failures(), 2);
  EXPECT_TRUE(std::isnan(m.ttft.mean));
  EXPECT_EQ(m.output_throughput, 0);
}

ServingRun run_of(std::vector<ServedRequest> requests) {
  ServingRun run;
  run.requests = std::move(requests);
  run.duration = 4;
  return run;
}

TEST(ServingReport, RecordsHaveSglangsNames) {
  ServingLoad load;
  load.num_prompts = 5;
  load.workload.vocabulary = 100;
  load.max_concurrency = 2;
  const ServingResult result = serving_result(load, 1, run_of(five()));
  const BenchConditions conditions{.url = "http://x",
                                   .api = "generate",
                                   .model = "m",
                                   .server = "version=1",
                                   .build = "b",
                                   .seed = 1};
  const json record = json::parse(serving_record(result, conditions, "nightly"));
  for (const char* key : {"backend",
                          "dataset_name",
                          "request_rate",
                          "max_concurrency",
                          "random_input_len",
                          "random_output_len",
                          "random_range_ratio",
                          "duration",
                          "completed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "input_throughput",
                          "output_throughput",
                          "mean_e2e_latency_ms",
                          "median_e2e_latency_ms",
                          "std_e2e_latency_ms",
                          "p99_e2e_latency_ms",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "mean_tpot_ms",
                          "median_tpot_ms",
                          "std_tpot_ms",
                          "p99_tpot_ms",
                          "mean_itl_ms",
                          "median_itl_ms",
                          "std_itl_ms",
                          "p95_itl_ms",
                          "p99_itl_ms",
                          "max_itl_ms",
                          "concurrency",
                          "accept_length"}) {
    EXPECT_TRUE(record.contains(key)) << key;
  }
  EXPECT_EQ(record["request_rate"], "inf");
  EXPECT_EQ(record["failed"], 2);
  EXPECT_EQ(record["failed_by_reason"], (json{{"status 503", 1}, {"timeout", 1}}));
  EXPECT_EQ(record["errors"]["timeout"], "full");
  EXPECT_EQ(record["median_ttft_ms"], 500);
  EXPECT_EQ(record["url"], "http://x");
  EXPECT_EQ(record["seed"], 1);

  const json one = json::parse(request_record(five()[1], 1, "nightly"));
  EXPECT_EQ(one["ttft"], 0.25);
  EXPECT_EQ(one["latency"], 1.25);
  EXPECT_EQ(one["success"], true);

  const std::vector<ServingResult> results = {result, result};
  const json summary = json::parse(serving_summary(results, conditions, "nightly"));
  EXPECT_EQ(summary["failed"], 4);
  EXPECT_EQ(summary["figures"]["median_ttft_ms"]["mean"], 500.0);
  EXPECT_EQ(summary["figures"]["median_ttft_ms"]["repeats"], 2);

  const std::string table = serving_table(results);
  EXPECT_THAT(table, HasSubstr("500.00 +- 0.00"));
  EXPECT_THAT(table, HasSubstr("3 of 5 completed, failed: 1 status 503, 1 timeout"));
  EXPECT_THAT(table, HasSubstr("answers shorter than asked for: 1"));
  EXPECT_THAT(serving_markdown(results), HasSubstr("| TTFT | 583.33 +- 0.00 |"));
}

TEST(ServingReport, ARunWithoutAnswersShowsNoFigures) {
  std::vector<ServedRequest> failed = five();
  failed.erase(failed.begin(), failed.begin() + 3);
  const std::vector<ServingResult> results = {serving_result({}, 0, run_of(failed))};
  EXPECT_THAT(serving_table(results), HasSubstr("TTFT     -"));
  const json record = json::parse(serving_record(results[0], {}, ""));
  EXPECT_TRUE(record["mean_ttft_ms"].is_null());
}

}  // namespace
}  // namespace cupel
