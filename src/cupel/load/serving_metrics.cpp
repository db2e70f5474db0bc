#include "cupel/load/serving_metrics.h"

namespace cupel {

int ServingMetrics::failures() const {
  int sum = 0;
  for (const auto& [reason, count] : failed) sum += count;
  return sum;
}

ServingMetrics serving_metrics(std::span<const ServedRequest> requests, double duration) {
  constexpr double kMilliseconds = 1000;
  ServingMetrics m;
  m.duration = duration;
  std::vector<double> ttft, tpot, itl, e2e, lag, wait;
  double under_way = 0;
  std::int64_t events = 0;
  for (const ServedRequest& r : requests) {
    if (!r.completed() || !r.first_token) {
      ++m.failed[r.reason];
      continue;
    }
    ++m.completed;
    m.total_input += r.prompt_tokens;
    m.cached_input += r.cached_tokens;
    m.total_output += r.completion_tokens;
    m.short_outputs += static_cast<int>(r.completion_tokens < r.output_len);
    events += r.events;
    const double first = *r.first_token - r.due;
    const double all = r.end - r.due;
    under_way += all;
    ttft.push_back(kMilliseconds * first);
    e2e.push_back(kMilliseconds * all);
    if (r.completion_tokens > 1) {
      tpot.push_back(kMilliseconds * (all - first) / (r.completion_tokens - 1));
    }
    for (const double gap : r.gaps) itl.push_back(kMilliseconds * gap);
    lag.push_back(kMilliseconds * (r.sent - r.due));
    wait.push_back(kMilliseconds * (r.due - r.scheduled));
  }
  const auto rate = [&](double count) { return duration > 0 ? count / duration : 0; };
  m.request_throughput = rate(m.completed);
  m.input_throughput = rate(static_cast<double>(m.total_input));
  m.output_throughput = rate(static_cast<double>(m.total_output));
  m.total_throughput = m.input_throughput + m.output_throughput;
  m.concurrency = rate(under_way);
  m.ttft = distribution(ttft);
  m.tpot = distribution(tpot);
  m.itl = distribution(itl);
  m.e2e = distribution(e2e);
  m.lag = distribution(lag);
  m.wait = distribution(wait);
  if (events > 0) {
    m.tokens_per_event = static_cast<double>(m.total_output) / static_cast<double>(events);
  }
  return m;
}

}  // namespace cupel
