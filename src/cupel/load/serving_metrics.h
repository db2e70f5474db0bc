// Figures of a run of requests, by SGLang's definitions (bench_serving, serving-stack.md section
// D).
#pragma once

#include <map>
#include <span>
#include <string>

#include "cupel/load/distribution.h"
#include "cupel/load/serving.h"

namespace cupel {

// Times in milliseconds, of completed requests; rates per second of `duration`.
struct ServingMetrics {
  double duration = 0;  // seconds
  int completed = 0;
  std::map<std::string, int> failed;  // by reason
  std::int64_t total_input = 0;       // tokens, as the server counts them
  std::int64_t total_output = 0;
  std::int64_t cached_input = 0;
  double request_throughput = 0;
  double input_throughput = 0;
  double output_throughput = 0;
  double total_throughput = 0;
  double concurrency = 0;  // sum of end-to-end latencies / duration: mean requests under way
  Distribution ttft;       // due -> first token
  Distribution tpot;       // (end-to-end - TTFT) / (output tokens - 1), of answers of 2 and more
  Distribution itl;        // SequenceTimes::gaps, of all requests together
  Distribution e2e;        // due -> end of the stream
  Distribution lag;        // due -> sent: the client's own, contained in TTFT and end-to-end
  Distribution wait;       // scheduled -> due: in line for a place, in no other figure
  double tokens_per_event = 0;  // above 1: events held several tokens
  int short_outputs = 0;        // completed with fewer tokens than asked for

  int failures() const;
};

ServingMetrics serving_metrics(std::span<const ServedRequest> requests, double duration);

}  // namespace cupel
