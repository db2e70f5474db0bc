// What `cupel bench serving` shows and keeps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cupel/load/repeated.h"
#include "cupel/load/serving_metrics.h"

namespace cupel {

// One repeat.
struct ServingResult {
  ServingLoad load;  // its seed is that of this repeat
  int repeat = 0;
  ServingMetrics metrics;
  std::map<std::string, std::string> errors;  // reason -> the first error in full
  bool interrupted = false;
  bool cache_flushed = false;
  double acc_length = -1;
};

ServingResult serving_result(const ServingLoad& load, int repeat, const ServingRun& run);

// One JSON line without the newline, with the fields of SGLang's result file and our own.
std::string serving_record(const ServingResult& result, const BenchConditions& conditions,
                           const std::string& run_name);

// One request of it, likewise.
std::string request_record(const ServedRequest& request, int repeat, const std::string& run_name);

// Means over the repeats with their 95 % intervals, as one JSON line.
std::string serving_summary(std::span<const ServingResult> results,
                            const BenchConditions& conditions, const std::string& run_name);

// Of at least one repeat.
std::string serving_table(std::span<const ServingResult> results);
std::string serving_markdown(std::span<const ServingResult> results);

}  // namespace cupel
