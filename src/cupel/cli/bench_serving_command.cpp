#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/base/error.h"
#include "cupel/cli/bench_commands.h"
#include "cupel/cli/bench_flags.h"
#include "cupel/cli/interrupt.h"
#include "cupel/cli/progress.h"
#include "cupel/eval/runner.h"
#include "cupel/load/report_text.h"
#include "cupel/load/serving_report.h"

namespace cupel {
namespace {

constexpr int kWarmupOutput = 32;  // at most, as SGLang
// Apart from the repeats, which are 0 and above.
constexpr int kWarmupRepeat = -1;

struct Flags {
  BenchFlags bench;
  ServingLoad load;
  int warmup = 1;
  bool flush_cache = false;
  bool no_ignore_eos = false;
  std::string requests;
};

class Measurement {
 public:
  Measurement(const Flags& flags, const BenchTarget& target)
      : flags_(flags),
        target_(target),
        load_(flags.load),
        conditions_(bench_conditions(target, flags.bench.seed)) {
    load_.ignore_eos = !flags.no_ignore_eos;
    load_.workload.vocabulary = target.api == Api::kChat ? 0 : flags.bench.vocabulary_of(target);
    lines_ = open_lines(flags.bench.json);
    requests_ = open_lines(flags.requests);
  }

  ExitCode run() {
    warm_up();
    bool whole = true;
    for (int repeat = 0; repeat < flags_.bench.repeats && whole; ++repeat) {
      const ServingRun run = measure(repeat);
      whole = !run.lost && !run.interrupted;
    }
    if (lines_) lines_->write_line(serving_summary(results_, conditions_, flags_.bench.run_name));
    fmt::print("{}\n{}\n\n{}", describe(conditions_), describe_load(),
               flags_.bench.markdown ? serving_markdown(results_) : serving_table(results_));
    for (const ServingResult& r : results_) whole = whole && r.metrics.failures() == 0;
    return whole ? ExitCode::kPass : ExitCode::kInfrastructure;
  }

 private:
  void warm_up() const {
    if (flags_.warmup == 0) return;
    ServingLoad load = load_;
    load.num_prompts = flags_.warmup;
    load.request_rate = std::numeric_limits<double>::infinity();
    load.workload.output_len = std::min(load.workload.output_len, kWarmupOutput);
    load.seed = request_seed(flags_.bench.seed, kWarmupRepeat, 0);
    const ServingRun run = run_serving(target_, load, {.interrupted = interrupt_requested});
    if (run.interrupted) throw InfrastructureError("warm-up", "interrupted");
    for (const ServedRequest& r : run.requests) {
      if (r.completed()) return;
    }
    const ServedRequest& first = run.requests.front();
    // A mistake of ours, which no later request would mend.
    if (first.status >= 400 && first.status < 500 && first.status != 429) {
      throw InputError("warm-up", "an answer", first.error);
    }
    throw InfrastructureError("warm-up", first.error);
  }

  ServingRun measure(int repeat) {
    ServingLoad load = load_;
    load.seed = request_seed(flags_.bench.seed, repeat, 0);
    const bool flushed = flags_.flush_cache && flush();
    Progress progress;
    progress.total = load.num_prompts;
    const auto printer = progress_printer(fmt::format("repeat {}", repeat));
    const auto done = [&](const ServedRequest& r) {
      if (requests_) requests_->write_line(request_record(r, repeat, flags_.bench.run_name));
      ++progress.done;
      progress.prompt_tokens += r.prompt_tokens;
      progress.completion_tokens += r.completion_tokens;
      progress.elapsed_seconds = std::max(progress.elapsed_seconds, r.end);
      printer(progress);
    };
    ServingRun run = run_serving(target_, load, {.interrupted = interrupt_requested, .done = done});
    ServingResult result = serving_result(load, repeat, run);
    result.cache_flushed = flushed;
    if (!run.lost && !run.interrupted) result.acc_length = accept_length();
    if (lines_) lines_->write_line(serving_record(result, conditions_, flags_.bench.run_name));
    results_.push_back(std::move(result));
    return run;
  }

  bool flush() const {
    HttpConnection connection(target_.http);
    try {
      if (flush_prefixes(connection)) return true;
      throw InputError("--flush-cache", "a server that can drop its prefixes",
                       "neither /flush_cache nor /reset_prefix_cache does");
    } catch (const TransientError& error) {
      throw InfrastructureError("--flush-cache", error.what());
    }
  }

  double accept_length() const {
    HttpConnection connection(target_.http);
    try {
      return ask_facts(connection).acc_length.value_or(-1);
    } catch (const TransientError&) {
      return -1;  // the figures are there all the same
    }
  }

  std::string describe_load() const {
    std::string text = fmt::format("{} prompts of {} tokens, {} out, range ratio {:g}, ",
                                   load_.num_prompts, load_.workload.input_len,
                                   load_.workload.output_len, load_.workload.range_ratio);
    text += load_.request_rate < std::numeric_limits<double>::infinity()
                ? fmt::format("Poisson arrivals at {:g}/s", load_.request_rate)
                : std::string("all due at once");
    text += load_.max_concurrency > 0 ? fmt::format(", at most {} at a time", load_.max_concurrency)
                                      : std::string(", no limit of concurrency");
    return fmt::format("{}, seed {}, repeats: {}", text, flags_.bench.seed, results_.size());
  }

  const Flags& flags_;
  const BenchTarget& target_;
  ServingLoad load_;
  BenchConditions conditions_;
  std::unique_ptr<LineWriter> lines_;
  std::unique_ptr<LineWriter> requests_;
  std::vector<ServingResult> results_;
};

ExitCode run_serving_bench(const Flags& flags) {
  check_load(flags.load);
  watch_interrupts();
  const BenchTarget target = flags.bench.target();
  return Measurement(flags, target).run();
}

}  // namespace

void add_bench_serving_command(CLI::App& bench, Run& run) {
  const auto flags = std::make_shared<Flags>();
  flags->bench.seed = 1;
  flags->load.workload.range_ratio = 0;
  CLI::App* command = bench.add_subcommand(
      "serving", "Requests by a schedule or so many at a time, as SGLang's bench_serving");
  flags->bench.add(*command);
  command->add_option("--num-prompts", flags->load.num_prompts, "Requests of a repeat")
      ->capture_default_str();
  command
      ->add_option("--request-rate", flags->load.request_rate,
                   "Requests a second, of a Poisson process; inf: all at once")
      ->capture_default_str();
  command
      ->add_option("--max-concurrency", flags->load.max_concurrency,
                   "At most so many requests under way; others wait, which no latency counts; 0: "
                   "no limit")
      ->capture_default_str();
  command->add_option("--input-len", flags->load.workload.input_len, "Longest prompt in tokens")
      ->capture_default_str();
  command->add_option("--output-len", flags->load.workload.output_len, "Longest answer in tokens")
      ->capture_default_str();
  command
      ->add_option("--range-ratio", flags->load.workload.range_ratio,
                   "Lengths are uniform from this share of the longest to the longest; 1: all "
                   "the longest")
      ->capture_default_str();
  command
      ->add_option("--warmup", flags->warmup,
                   "Requests of at most 32 tokens out before the first repeat")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--flush-cache", flags->flush_cache,
                    "Drop the server's kept prefixes before each repeat (default: keep them; no "
                    "prompt comes twice)");
  command->add_flag("--no-ignore-eos", flags->no_ignore_eos,
                    "Let answers end by themselves (default: ask for ignore_eos)");
  command->add_option("--requests", flags->requests,
                      "Append one JSON line a request here, as it ends (default: none)");
  command->callback([=, &run] { run = [=] { return run_serving_bench(*flags); }; });
}

}  // namespace cupel
