// One closed batch, as SGLang's bench_one_batch_server times it (serving-stack.md section D): one
// streamed request that holds all prompts, answers of a fixed length.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cupel/load/bench_target.h"

namespace cupel {

struct OneBatchCase {
  int batch_size = 1;
  int input_len = 8192;
  int output_len = 1024;
};

struct OneBatchFigures {
  double latency = 0;           // seconds, of the whole request
  double last_ttft = 0;         // seconds until the last sequence shows its first token
  double input_throughput = 0;  // batch_size * input_len / last_ttft, tokens a second
  double output_throughput =
      0;  // batch_size * output_len / (latency - last_ttft); NaN if one token
  double overall_throughput = 0;  // batch_size * (input_len + output_len) / latency
  double itl_ms = 0;              // 1000 * batch_size / output_throughput: a mean; NaN if one token
};

OneBatchFigures one_batch_figures(const OneBatchCase& c, double last_ttft, double latency);

struct OneBatchResult {
  OneBatchCase sizes;
  int repeat = 0;
  bool throw_away = false;
  std::uint64_t prompt_seed = 0;
  bool cache_flushed = false;

  // Either of the first two says why there are no figures.
  std::string skipped = {};  // beyond what the server says it holds: not asked
  std::string reason = {};   // LoadReply::reason
  std::string error = {};    // LoadReply::error

  std::optional<OneBatchFigures> figures = {};
  double tokens_per_event = 0;                // 1: each token was seen by itself
  std::optional<double> cache_hit_rate = {};  // cached share of these prompts, by the reply
  double last_gen_throughput = -1;            // the server's own last figures, -1 where it has none
  double acc_length = -1;
};

// Prompts of sequence i are drawn from a seed made of (seed, repeat, case, i), and the cache is
// flushed before: no case meets what another one left. Throws InfrastructureError if the server is
// not there at all.
class OneBatchBench {
 public:
  struct Options {
    int vocabulary = 0;  // above 0
    std::uint64_t seed = 42;
    std::function<bool()> interrupted = {};
  };

  // Throws InputError for chat.
  OneBatchBench(const BenchTarget& target, Options options);

  // `number` is that of the case in its list, -1 and below for warm-ups.
  OneBatchResult run(const OneBatchCase& sizes, int repeat, int number);

 private:
  // Beyond the running requests or tokens that the server holds; empty where it fits or the server
  // does not tell.
  std::string too_large(const OneBatchCase& sizes, const ServerFacts& facts) const;
  void ask(OneBatchResult& result);

  const BenchTarget& target_;
  Options options_;
  HttpConnection connection_;
};

}  // namespace cupel
