#include "cupel/server/metrics.h"

#include <prometheus/text_serializer.h>

namespace cupel {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kFirstToken = {0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,
                             2,     5,     10,   20,   40,   60,  120, 240};
const Buckets kBetweenTokens = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04,
                                0.06,   0.1,   0.2,   0.5,   1,    2,    5};
const Buckets kWholeRequest = {0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 40, 60, 120, 300, 600};

}  // namespace

Metrics::Metrics(const std::string& model_name)
    : labels_({{"model_name", model_name}}),
      requests_(counter("sglang:num_requests_total", "Sequences that ended by themselves")),
      aborted_(counter("sglang:num_aborted_requests_total", "Sequences that were cancelled")),
      failed_(counter("cupel:num_failed_requests_total", "Sequences that the model failed at")),
      prompt_tokens_(counter("sglang:prompt_tokens_total",
                             "Prompt tokens of sequences that ended by themselves")),
      cached_tokens_(
          counter("sglang:cached_tokens_total", "Of those, tokens that were not computed again")),
      generation_tokens_(counter("sglang:generation_tokens_total",
                                 "Tokens of sequences that ended by themselves")),
      running_(gauge("sglang:num_running_reqs", "Sequences that run")),
      waiting_(gauge("sglang:num_queue_reqs", "Sequences that wait")),
      token_usage_(gauge("sglang:token_usage", "Share of the cache's bytes in use")),
      hit_rate_(gauge("sglang:cache_hit_rate", "Share of prompt tokens that were not computed")),
      throughput_(gauge("sglang:gen_throughput", "Generated tokens per second, the last figure")),
      connections_(gauge("cupel:connections", "Open connections")),
      preemptions_(gauge("sglang:num_retracted_reqs", "Sequences that lost their cache so far")),
      first_token_(histogram("sglang:time_to_first_token_seconds", "From submission", kFirstToken)),
      between_tokens_(
          histogram("sglang:inter_token_latency_seconds", "Between tokens", kBetweenTokens)),
      end_to_end_(histogram("sglang:e2e_request_latency_seconds", "From submission to the end",
                            kWholeRequest)),
      queue_(histogram("sglang:queue_time_seconds", "From submission to the first computed token",
                       kFirstToken)),
      http_(prometheus::BuildCounter()
                .Name("cupel:http_requests_total")
                .Help("Answered HTTP requests")
                .Register(registry_)) {}

prometheus::Counter& Metrics::counter(const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(labels_);
}

prometheus::Gauge& Metrics::gauge(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(labels_);
}

prometheus::Histogram& Metrics::histogram(const char* name, const char* help,
                                          const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(labels_,
                                                                                    buckets);
}

void Metrics::token(double gap_seconds) {
  if (gap_seconds >= 0) between_tokens_.Observe(gap_seconds);
  constexpr std::chrono::seconds kWindow(1);
  const Clock::time_point now = Clock::now();
  const std::scoped_lock lock(mutex_);
  if (now - last_token_ > kWindow) {  // after a pause
    window_ = now;
    window_tokens_ = 0;
  }
  last_token_ = now;
  ++window_tokens_;
  const auto span = std::chrono::duration<double>(now - window_).count();
  // Of a shorter time the figure would be noise.
  if (span > 0.05) last_throughput_ = window_tokens_ / span;
  if (now - window_ > kWindow) {
    window_ = now;
    window_tokens_ = 0;
  }
}

void Metrics::ended(const Generation& generation, std::size_t prompt_tokens) {
  if (generation.finish == FinishReason::kCancelled) return aborted_.Increment();
  if (generation.finish == FinishReason::kError) return failed_.Increment();
  requests_.Increment();
  prompt_tokens_.Increment(static_cast<double>(prompt_tokens));
  cached_tokens_.Increment(generation.cached_prompt_tokens);
  generation_tokens_.Increment(static_cast<double>(generation.output_ids.size()));
  first_token_.Observe(generation.first_token_seconds);
  end_to_end_.Observe(generation.total_seconds);
  queue_.Observe(generation.queue_seconds);
}

void Metrics::http_request(const std::string& path, int status) {
  http_.Add({{"path", path}, {"status", std::to_string(status)}}).Increment();
}

double Metrics::generation_throughput() const {
  const std::scoped_lock lock(mutex_);
  return last_throughput_;
}

std::string Metrics::text(const EngineStats& stats, int connections) {
  running_.Set(static_cast<double>(stats.running));
  waiting_.Set(static_cast<double>(stats.waiting));
  token_usage_.Set(static_cast<double>(stats.cache_bytes) /
                   static_cast<double>(stats.max_cache_bytes));
  hit_rate_.Set(stats.hit_rate());
  throughput_.Set(generation_throughput());
  connections_.Set(connections);
  preemptions_.Set(static_cast<double>(stats.preemptions));
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

void TokenTiming::token() {
  const auto now = std::chrono::steady_clock::now();
  metrics_.token(first_ ? -1 : std::chrono::duration<double>(now - last_).count());
  first_ = false;
  last_ = now;
}

}  // namespace cupel
