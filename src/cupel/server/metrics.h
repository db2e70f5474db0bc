// Counters and histograms of a server, in the text form of Prometheus under SGLang's names.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "cupel/engine/engine.h"

namespace cupel {

// All calls are thread-safe.
class Metrics {
 public:
  explicit Metrics(const std::string& model_name);

  // A generated token; `gap_seconds` since the one before it, negative for the first.
  void token(double gap_seconds);
  // The end of a sequence.
  void ended(const Generation& generation, std::size_t prompt_tokens);
  // An answered HTTP request.
  void http_request(const std::string& path, int status);

  // Generated tokens per second when there were any last.
  double generation_throughput() const;
  std::string text(const EngineStats& stats, int connections);

 private:
  using Clock = std::chrono::steady_clock;

  prometheus::Counter& counter(const char* name, const char* help);
  prometheus::Gauge& gauge(const char* name, const char* help);
  prometheus::Histogram& histogram(const char* name, const char* help,
                                   const prometheus::Histogram::BucketBoundaries& buckets);

  prometheus::Registry registry_;
  prometheus::Labels labels_;
  prometheus::Counter &requests_, &aborted_, &failed_, &prompt_tokens_, &cached_tokens_,
      &generation_tokens_;
  prometheus::Gauge &running_, &waiting_, &token_usage_, &hit_rate_, &throughput_, &connections_,
      &preemptions_;
  prometheus::Histogram &first_token_, &between_tokens_, &end_to_end_, &queue_;
  prometheus::Family<prometheus::Counter>& http_;

  // Tokens of the present window of about a second.
  mutable std::mutex mutex_;
  Clock::time_point window_ = {}, last_token_ = {};
  int window_tokens_ = 0;
  double last_throughput_ = 0;
};

// Times the tokens of one sequence. Used by the engine's thread alone.
class TokenTiming {
 public:
  TokenTiming(Metrics& metrics, std::size_t prompt_tokens)
      : metrics_(metrics), prompt_tokens_(prompt_tokens) {}

  void token();
  void end(const Generation& generation) { metrics_.ended(generation, prompt_tokens_); }

 private:
  Metrics& metrics_;
  std::size_t prompt_tokens_;
  bool first_ = true;
  std::chrono::steady_clock::time_point last_ = {};
};

}  // namespace cupel
