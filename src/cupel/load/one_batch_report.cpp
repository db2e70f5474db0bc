#include "cupel/load/one_batch_report.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/assay/report/printable.h"
#include "cupel/base/utc_time.h"
#include "cupel/load/report_text.h"

namespace cupel {
namespace {

using nlohmann::ordered_json;

constexpr double kInputUtilisation = 0.7;  // SGLang's
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

NamedFigures named_figures(const OneBatchResult& r) {
  // All names, whether there are figures or not.
  const OneBatchFigures f = r.figures.value_or(OneBatchFigures{.latency = kNone,
                                                               .last_ttft = kNone,
                                                               .input_throughput = kNone,
                                                               .output_throughput = kNone,
                                                               .overall_throughput = kNone,
                                                               .itl_ms = kNone});
  return {{"latency", f.latency},
          {"input_throughput", f.input_throughput},
          {"output_throughput", f.output_throughput},
          {"overall_throughput", f.overall_throughput},
          {"last_ttft", f.last_ttft},
          {"last_gen_throughput", r.last_gen_throughput},
          {"acc_length", r.acc_length},
          {"cache_hit_rate", r.cache_hit_rate.value_or(kNone)},
          {"itl_ms", f.itl_ms},
          {"tokens_per_event", r.figures ? r.tokens_per_event : kNone}};
}

ordered_json head(const char* kind, const OneBatchCase& c, const std::string& run_name) {
  return {{"kind", kind},
          {"run_name", run_name},
          {"batch_size", c.batch_size},
          {"input_len", c.input_len},
          {"output_len", c.output_len}};
}

std::string line(ordered_json record, const BenchConditions& conditions) {
  record.update(to_json(conditions));
  return json_line(record);
}

bool same(const OneBatchCase& a, const OneBatchCase& b) {
  return a.batch_size == b.batch_size && a.input_len == b.input_len && a.output_len == b.output_len;
}

// SGLang writes "n/a" for what there is not.
std::string or_none(const RepeatedFigure& figure, int digits) {
  return figure.repeats > 0 && figure.mean >= 0 ? fmt::format("{:.{}f}", figure.mean, digits)
                                                : "n/a";
}

}  // namespace

std::string one_batch_record(const OneBatchResult& r, const BenchConditions& conditions,
                             const std::string& run_name) {
  ordered_json record = head("one_batch", r.sizes, run_name);
  for (const auto& [name, value] : named_figures(r)) record[name] = value;
  record["profile_link"] = nullptr;  // there are no profiles
  record["repeat"] = r.repeat;
  record["throw_away"] = r.throw_away;
  record["skipped"] = r.skipped;
  record["reason"] = r.reason;
  record["error"] = r.error;
  record["prompt_seed"] = r.prompt_seed;
  record["cache_flushed"] = r.cache_flushed;
  record["ended"] = utc_now();
  return line(std::move(record), conditions);
}

std::vector<OneBatchRow> one_batch_rows(std::span<const OneBatchResult> results) {
  std::vector<OneBatchRow> rows;
  for (const OneBatchResult& r : results) {
    if (r.throw_away) continue;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const OneBatchRow& known) { return same(known.sizes, r.sizes); });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), {.sizes = r.sizes, .repeats = {}, .problems = {}});
    }
    if (r.figures) row->repeats.push_back(named_figures(r));
    if (!r.skipped.empty()) row->problems.push_back("skipped: " + r.skipped);
    if (!r.reason.empty()) row->problems.push_back(r.reason + ": " + r.error);
  }
  return rows;
}

std::string one_batch_summary(const OneBatchRow& row, const BenchConditions& conditions,
                              const std::string& run_name) {
  ordered_json record = head("one_batch_summary", row.sizes, run_name);
  record["repeats"] = row.repeats.size();
  record["failed"] = row.problems.size();
  record["figures"] = summary_json(row.repeats);
  return line(std::move(record), conditions);
}

std::string one_batch_table(std::span<const OneBatchRow> rows) {
  std::vector<TableRow> table = {
      {"batch", "input", "output", "repeats", "latency", "last TTFT", "input", "output", "overall",
       "ITL", "acc", "cache"},
      {"size", "len", "len", "", "s", "s", "tok/s", "tok/s", "tok/s", "ms", "length", "hits"}};
  std::string notes;
  for (const OneBatchRow& row : rows) {
    const auto cell = [&](const char* name, int digits) {
      return show(over_repeats(row.repeats, name), digits);
    };
    const RepeatedFigure acc = over_repeats(row.repeats, "acc_length");
    table.push_back({std::to_string(row.sizes.batch_size), std::to_string(row.sizes.input_len),
                     std::to_string(row.sizes.output_len), std::to_string(row.repeats.size()),
                     cell("latency", 3), cell("last_ttft", 3), cell("input_throughput", 1),
                     cell("output_throughput", 1), cell("overall_throughput", 1), cell("itl_ms", 2),
                     acc.mean > 0 ? fmt::format("{:.2f}", acc.mean) : "-",
                     cell("cache_hit_rate", 4)});
    for (const std::string& problem : row.problems) {
      notes += fmt::format("batch {}: {}\n", row.sizes.batch_size, printable(problem));
    }
    const RepeatedFigure tokens = over_repeats(row.repeats, "tokens_per_event");
    if (tokens.mean > 1) {
      notes += fmt::format("batch {}: events held {:.2f} tokens on average\n", row.sizes.batch_size,
                           tokens.mean);
    }
  }
  return text_table(table) + notes;
}

std::string one_batch_markdown(std::span<const OneBatchRow> rows,
                               std::optional<double> dollars_per_hour) {
  std::vector<TableRow> table = {{"batch size", "input len", "latency (s)",
                                  "input throughput (tok/s)", "output throughput (tok/s)",
                                  "acc length", "ITL (ms)", "input cost ($/1M)",
                                  "output cost ($/1M)", "cache hit rate"}};
  for (const OneBatchRow& row : rows) {
    const auto figure = [&](const char* name) { return over_repeats(row.repeats, name); };
    const auto cost = [&](const char* rate, double utilisation) -> std::string {
      const double tokens = figure(rate).mean * utilisation * 3600;
      if (!dollars_per_hour || !(tokens > 0)) return "n/a";
      return fmt::format("{:.2f}", 1e6 / tokens * *dollars_per_hour);
    };
    table.push_back({std::to_string(row.sizes.batch_size), std::to_string(row.sizes.input_len),
                     or_none(figure("latency"), 2), or_none(figure("input_throughput"), 2),
                     or_none(figure("output_throughput"), 2), or_none(figure("acc_length"), 2),
                     or_none(figure("itl_ms"), 2), cost("input_throughput", kInputUtilisation),
                     cost("output_throughput", 1), or_none(figure("cache_hit_rate"), 4)});
  }
  return markdown_table(table);
}

}  // namespace cupel
