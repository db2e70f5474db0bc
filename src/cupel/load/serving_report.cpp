#include "cupel/load/serving_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/assay/report/printable.h"
#include "cupel/base/utc_time.h"
#include "cupel/load/report_text.h"

namespace cupel {
namespace {

using nlohmann::ordered_json;

// SGLang's names of the four, and those of the tables.
struct Quantity {
  const char* key;
  const char* shown;
};
constexpr Quantity kQuantities[] = {
    {"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2e_latency", "E2E"}};

void add(NamedFigures& figures, const std::string& key, const Distribution& d) {
  figures.emplace_back("mean_" + key + "_ms", d.mean);
  figures.emplace_back("median_" + key + "_ms", d.median);
  figures.emplace_back("std_" + key + "_ms", d.deviation);
  figures.emplace_back("p95_" + key + "_ms", d.p95);
  figures.emplace_back("p99_" + key + "_ms", d.p99);
  figures.emplace_back("max_" + key + "_ms", d.largest);
}

NamedFigures named_figures(const ServingMetrics& m) {
  NamedFigures figures = {{"duration", m.duration},
                          {"request_throughput", m.request_throughput},
                          {"input_throughput", m.input_throughput},
                          {"output_throughput", m.output_throughput},
                          {"total_throughput", m.total_throughput},
                          {"concurrency", m.concurrency}};
  const Distribution* const distributions[] = {&m.ttft, &m.tpot, &m.itl, &m.e2e};
  for (std::size_t i = 0; i < std::size(kQuantities); ++i) {
    add(figures, kQuantities[i].key, *distributions[i]);
  }
  add(figures, "lag", m.lag);
  add(figures, "wait", m.wait);
  figures.emplace_back("tokens_per_event", m.tokens_per_event);
  return figures;
}

std::vector<NamedFigures> all_figures(std::span<const ServingResult> results) {
  std::vector<NamedFigures> all;
  for (const ServingResult& r : results) {
    // A repeat without an answer has no rates either.
    if (r.metrics.completed > 0) all.push_back(named_figures(r.metrics));
  }
  return all;
}

ordered_json load_json(const ServingLoad& load) {
  ordered_json rate = load.request_rate;
  if (std::isinf(load.request_rate)) rate = "inf";  // JSON has no such number
  ordered_json concurrency = load.max_concurrency;
  if (load.max_concurrency == 0) concurrency = nullptr;
  return {{"dataset_name", load.workload.vocabulary > 0 ? "random-ids" : "random-letters"},
          {"num_prompts", load.num_prompts},
          {"request_rate", rate},
          {"max_concurrency", concurrency},
          {"random_input_len", load.workload.input_len},
          {"random_output_len", load.workload.output_len},
          {"random_range_ratio", load.workload.range_ratio},
          {"ignore_eos", load.ignore_eos}};
}

// "2 status 503, 1 timeout".
std::string listed(const std::map<std::string, int>& failed) {
  std::string text;
  for (const auto& [reason, count] : failed) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  }
  return text;
}

std::vector<TableRow> latencies(const std::vector<NamedFigures>& figures) {
  std::vector<TableRow> table = {{"ms", "mean", "median", "std", "P99"}};
  for (const Quantity& quantity : kQuantities) {
    TableRow row = {quantity.shown};
    for (const char* which : {"mean", "median", "std", "p99"}) {
      row.push_back(show(over_repeats(figures, fmt::format("{}_{}_ms", which, quantity.key)), 2));
    }
    table.push_back(std::move(row));
  }
  return table;
}

std::vector<TableRow> rates(const std::vector<NamedFigures>& figures) {
  TableRow values;
  for (const char* name : {"request_throughput", "input_throughput", "output_throughput",
                           "total_throughput", "concurrency", "duration"}) {
    values.push_back(show(over_repeats(figures, name), 2));
  }
  return {{"requests/s", "input tok/s", "output tok/s", "total tok/s", "concurrency", "duration s"},
          values};
}

// What the figures do not tell by themselves.
std::string notes(std::span<const ServingResult> results) {
  std::string text;
  for (const ServingResult& r : results) {
    const ServingMetrics& m = r.metrics;
    text += fmt::format("repeat {}: {} of {} completed", r.repeat, m.completed, r.load.num_prompts);
    if (m.failures() > 0) text += ", failed: " + listed(m.failed);
    text += fmt::format("; {} prompt tokens ({} cached), {} output tokens\n", m.total_input,
                        m.cached_input, m.total_output);
    if (m.completed > 0) {
      text +=
          fmt::format("    client lag: mean {:.2f}, largest {:.2f} ms", m.lag.mean, m.lag.largest);
      if (r.load.max_concurrency > 0) {
        text += fmt::format("; wait for a place: mean {:.2f}, largest {:.2f} ms (in no latency)",
                            m.wait.mean, m.wait.largest);
      }
      text += fmt::format("; {:.2f} tokens an event\n", m.tokens_per_event);
    }
    if (m.cached_input > 0) {
      text +=
          "    the server had some prompts in its cache: from an earlier run with this seed? "
          "(--flush-cache or another --seed)\n";
    }
    if (m.short_outputs > 0) {
      text += fmt::format("    answers shorter than asked for: {}\n", m.short_outputs);
    }
    for (const auto& [reason, error] : r.errors) {
      text += fmt::format("    {}: {}\n", reason, printable(error));
    }
  }
  return text;
}

}  // namespace

ServingResult serving_result(const ServingLoad& load, int repeat, const ServingRun& run) {
  ServingResult result{.load = load,
                       .repeat = repeat,
                       .metrics = serving_metrics(run.requests, run.duration),
                       .errors = {},
                       .interrupted = run.interrupted};
  for (const ServedRequest& r : run.requests) {
    if (!r.completed() && !r.error.empty()) result.errors.emplace(r.reason, r.error);
  }
  return result;
}

std::string serving_record(const ServingResult& r, const BenchConditions& conditions,
                           const std::string& run_name) {
  const ServingMetrics& m = r.metrics;
  ordered_json record = {{"kind", "serving"}, {"run_name", run_name}, {"backend", conditions.api}};
  record.update(load_json(r.load));
  record["repeat"] = r.repeat;
  record["completed"] = m.completed;
  record["failed"] = m.failures();
  record["failed_by_reason"] = m.failed;
  record["errors"] = r.errors;
  record["interrupted"] = r.interrupted;
  record["total_input_tokens"] = m.total_input;
  record["total_cached_tokens"] = m.cached_input;
  record["total_output_tokens"] = m.total_output;
  for (const auto& [name, value] : named_figures(m)) record[name] = value;
  record["accept_length"] = r.acc_length;
  record["short_outputs"] = m.short_outputs;
  record["prompt_seed"] = r.load.seed;
  record["cache_flushed"] = r.cache_flushed;
  record["ended"] = utc_now();
  record.update(to_json(conditions));
  return json_line(record);
}

std::string request_record(const ServedRequest& r, int repeat, const std::string& run_name) {
  ordered_json first = nullptr;
  if (r.first_token) first = *r.first_token - r.due;
  return json_line({{"kind", "request"},
                    {"run_name", run_name},
                    {"repeat", repeat},
                    {"index", r.index},
                    {"scheduled", r.scheduled},
                    {"due", r.due},
                    {"sent", r.sent},
                    {"ttft", first},
                    {"latency", r.end - r.due},
                    {"itls", r.gaps},
                    {"input_len", r.input_len},
                    {"prompt_tokens", r.prompt_tokens},
                    {"cached_tokens", r.cached_tokens},
                    {"output_len", r.output_len},
                    {"completion_tokens", r.completion_tokens},
                    {"events", r.events},
                    {"success", r.completed()},
                    {"reason", r.reason},
                    {"error", r.error}});
}

std::string serving_summary(std::span<const ServingResult> results,
                            const BenchConditions& conditions, const std::string& run_name) {
  ordered_json record = {
      {"kind", "serving_summary"}, {"run_name", run_name}, {"backend", conditions.api}};
  record.update(load_json(results.front().load));
  record["repeats"] = results.size();
  int failed = 0;
  for (const ServingResult& r : results) failed += r.metrics.failures();
  record["failed"] = failed;
  record["figures"] = summary_json(all_figures(results));
  record.update(to_json(conditions));
  return json_line(record);
}

std::string serving_table(std::span<const ServingResult> results) {
  const std::vector<NamedFigures> figures = all_figures(results);
  return text_table(latencies(figures)) + "\n" + text_table(rates(figures)) + "\n" + notes(results);
}

std::string serving_markdown(std::span<const ServingResult> results) {
  const std::vector<NamedFigures> figures = all_figures(results);
  return markdown_table(latencies(figures)) + "\n" + markdown_table(rates(figures)) + "\n" +
         "```\n" + notes(results) + "```\n";
}

}  // namespace cupel
