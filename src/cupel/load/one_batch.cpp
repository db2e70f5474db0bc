#include "cupel/load/one_batch.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/eval/runner.h"
#include "cupel/load/interrupt_watch.h"
#include "cupel/load/load_reply.h"
#include "cupel/load/load_request.h"

namespace cupel {
namespace {

// The tokens that the server counts are the ones that the figures are made of.
std::string wrong_counts(const OneBatchCase& c, const TokenUsage& usage) {
  const auto differs = [&](const char* what, int asked, int found) {
    return found == c.batch_size * asked
               ? std::string()
               : fmt::format("{} x {} {} tokens were asked for, the server counts {}", c.batch_size,
                             asked, what, found);
  };
  const std::string output = differs("output", c.output_len, usage.completion);
  return output.empty() ? differs("prompt", c.input_len, usage.prompt) : output;
}

}  // namespace

OneBatchFigures one_batch_figures(const OneBatchCase& c, double last_ttft, double latency) {
  const double batch = c.batch_size;
  // With one token there is no time between tokens.
  const double decode =
      c.output_len > 1 ? latency - last_ttft : std::numeric_limits<double>::quiet_NaN();
  const double output = batch * c.output_len / decode;
  return {.latency = latency,
          .last_ttft = last_ttft,
          .input_throughput = batch * c.input_len / last_ttft,
          .output_throughput = output,
          .overall_throughput = batch * (c.input_len + c.output_len) / latency,
          .itl_ms = 1000 * batch / output};
}

OneBatchBench::OneBatchBench(const BenchTarget& target, Options options)
    : target_(target), options_(std::move(options)), connection_(target.http) {
  if (target.api == Api::kChat) {
    throw InputError("--api", "generate or completions, which take several prompts in one request",
                     "chat");
  }
}

std::string OneBatchBench::too_large(const OneBatchCase& c, const ServerFacts& facts) const {
  if (facts.max_running && c.batch_size > *facts.max_running) {
    return fmt::format("the server runs {} requests at a time", *facts.max_running);
  }
  const std::int64_t tokens = std::int64_t{c.batch_size} * (c.input_len + c.output_len);
  if (facts.token_capacity && tokens > *facts.token_capacity) {
    return fmt::format("{} tokens, the server holds {}", tokens, *facts.token_capacity);
  }
  return {};
}

OneBatchResult OneBatchBench::run(const OneBatchCase& sizes, int repeat, int number) {
  OneBatchResult result{
      .sizes = sizes, .repeat = repeat, .prompt_seed = request_seed(options_.seed, repeat, number)};
  const InterruptWatch watch(options_.interrupted, [this] { connection_.stop(); });
  try {
    result.skipped = too_large(sizes, ask_facts(connection_));
    if (!result.skipped.empty()) return result;
    result.cache_flushed = flush_prefixes(connection_);
    ask(result);
    if (result.figures) {
      const ServerFacts after = ask_facts(connection_);
      result.last_gen_throughput = after.last_gen_throughput.value_or(-1);
      result.acc_length = after.acc_length.value_or(-1);
    }
  } catch (const TransientError& error) {
    // Of the questions around the request.
    if (!result.figures) {
      result.reason = failure_reason(error.kind());
      result.error = error.what();
    }
  }
  if (watch.seen() && !result.figures) result.reason = kInterruptedReason;
  return result;
}

void OneBatchBench::ask(OneBatchResult& result) {
  const OneBatchCase& c = result.sizes;
  const Workload workload{.input_len = c.input_len,
                          .output_len = c.output_len,
                          .range_ratio = 1,
                          .vocabulary = options_.vocabulary};
  std::vector<LoadPrompt> prompts;
  prompts.reserve(static_cast<std::size_t>(c.batch_size));
  for (int i = 0; i < c.batch_size; ++i) {
    prompts.push_back(draw_prompt(workload, request_seed(result.prompt_seed, 0, i)));
  }
  const std::string body = batch_body(
      {.api = target_.api, .served_model = target_.identity.model, .ignore_eos = true}, prompts);
  const LoadReply reply =
      stream_reply(connection_, target_.http, target_.api, body, prompts.size(), LoadClock::now());
  result.reason = reply.reason;
  result.error = reply.error;
  if (!reply.reason.empty()) return;
  const auto usage = reply.times.usage();
  const auto last_ttft = reply.times.last_first_token();
  if (!usage || !last_ttft) return;
  result.error = wrong_counts(c, *usage);
  if (!result.error.empty()) {
    result.reason = "other lengths";
    return;
  }
  result.figures = one_batch_figures(c, *last_ttft, reply.end);
  result.tokens_per_event = static_cast<double>(usage->completion) / reply.times.events();
  // The OpenAI interfaces leave it out where caching is off, or where they do not count.
  if (target_.api == Api::kGenerate) {
    result.cache_hit_rate = static_cast<double>(usage->cached_prompt) / usage->prompt;
  }
}

}  // namespace cupel
