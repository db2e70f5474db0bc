// What `cupel bench one-batch` shows and keeps.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/load/one_batch.h"
#include "cupel/load/repeated.h"

namespace cupel {

// One JSON line without the newline, with the fields of SGLang's BenchOneCaseResult and our own:
// figures are null where the case failed ("reason", "error") or was skipped.
std::string one_batch_record(const OneBatchResult& result, const BenchConditions& conditions,
                             const std::string& run_name);

// The repeats of one case, throw-aways left out.
struct OneBatchRow {
  OneBatchCase sizes;
  std::vector<NamedFigures> repeats;  // of those with figures
  std::vector<std::string> problems;  // "skipped: ...", "status 503: ...", one a failed repeat
};

// In the order in which the cases first came.
std::vector<OneBatchRow> one_batch_rows(std::span<const OneBatchResult> results);

// Means over the repeats with their 95 % intervals, as one JSON line.
std::string one_batch_summary(const OneBatchRow& row, const BenchConditions& conditions,
                              const std::string& run_name);

std::string one_batch_table(std::span<const OneBatchRow> rows);

// SGLang's table, of the means. Costs need what the server costs an hour, in dollars; as SGLang, a
// prompt token is charged as if the server took prompts at 70 % of the measured rate.
std::string one_batch_markdown(std::span<const OneBatchRow> rows,
                               std::optional<double> dollars_per_hour);

}  // namespace cupel
