#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/cli/bench_commands.h"
#include "cupel/cli/bench_flags.h"
#include "cupel/cli/interrupt.h"
#include "cupel/load/load_reply.h"
#include "cupel/load/one_batch_report.h"
#include "cupel/load/report_text.h"

namespace cupel {
namespace {

// SGLang's warm-up; never longer than what is measured.
constexpr int kWarmupInput = 1024;
constexpr int kWarmupOutput = 16;
// Apart from the repeats, which are 0 and above.
constexpr int kWarmupRepeat = -1;

struct Flags {
  BenchFlags bench;
  // The list of SGLang's nightly; its first is thrown away.
  std::vector<int> batch_sizes = {1, 1, 2, 4, 8, 16, 32};
  std::vector<int> input_lens = {8192};
  std::vector<int> output_lens = {1024};
  bool skip_warmup = false;
  double dollars_per_hour = 0;
};

std::vector<OneBatchCase> cases_of(const Flags& flags) {
  std::vector<OneBatchCase> cases;
  for (const int batch : flags.batch_sizes) {
    for (const int input : flags.input_lens) {
      for (const int output : flags.output_lens) cases.push_back({batch, input, output});
    }
  }
  return cases;
}

// A size that the list begins with twice is there to warm up.
bool first_is_thrown_away(const Flags& flags) {
  return flags.batch_sizes.size() > 1 && flags.batch_sizes[0] == flags.batch_sizes[1];
}

std::string told(const OneBatchResult& r) {
  if (!r.skipped.empty()) return "skipped: " + r.skipped;
  if (!r.figures) return r.reason + ": " + r.error;
  return fmt::format("latency {:.3f} s, input {:.1f} tok/s, output {:.1f} tok/s",
                     r.figures->latency, r.figures->input_throughput, r.figures->output_throughput);
}

class Measurement {
 public:
  Measurement(const Flags& flags, const BenchTarget& target)
      : flags_(flags),
        conditions_(bench_conditions(target, flags.bench.seed)),
        bench_(target, {.vocabulary = flags.bench.vocabulary_of(target),
                        .seed = flags.bench.seed,
                        .interrupted = interrupt_requested}),
        lines_(open_lines(flags.bench.json)) {}

  ExitCode run() {
    const bool whole = (flags_.skip_warmup || warm_up()) && measure();
    report();
    return whole ? ExitCode::kPass : ExitCode::kInfrastructure;
  }

 private:
  // False if it cannot go on: the user ended it, or nobody is there.
  bool warm_up() {
    const int input = *std::max_element(flags_.input_lens.begin(), flags_.input_lens.end());
    const int output = *std::max_element(flags_.output_lens.begin(), flags_.output_lens.end());
    for (std::size_t i = 0; i < flags_.batch_sizes.size(); ++i) {
      const OneBatchResult r = bench_.run(
          {flags_.batch_sizes[i], std::min(input, kWarmupInput), std::min(output, kWarmupOutput)},
          kWarmupRepeat, static_cast<int>(i));
      spdlog::info("warm-up, batch {}: {}", r.sizes.batch_size, told(r));
      if (fatal(r)) return false;
    }
    return true;
  }

  // False if anything was not measured that the server says it can hold.
  bool measure() {
    const std::vector<OneBatchCase> cases = cases_of(flags_);
    const std::size_t thrown_away =
        first_is_thrown_away(flags_) ? cases.size() / flags_.batch_sizes.size() : 0;
    bool whole = true;
    for (int repeat = 0; repeat < flags_.bench.repeats; ++repeat) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        OneBatchResult r = bench_.run(cases[i], repeat, static_cast<int>(i));
        r.throw_away = i < thrown_away;
        spdlog::info("repeat {}, batch {}{}: {}", repeat, r.sizes.batch_size,
                     r.throw_away ? ", thrown away" : "", told(r));
        if (lines_) lines_->write_line(one_batch_record(r, conditions_, flags_.bench.run_name));
        if (r.figures && !r.cache_flushed && !warned_) {
          warned_ = true;
          spdlog::warn("the server's cache could not be flushed; prompts differ all the same");
        }
        whole = whole && r.reason.empty();
        results_.push_back(std::move(r));
        if (fatal(results_.back())) return false;
      }
    }
    return whole;
  }

  static bool fatal(const OneBatchResult& r) {
    return r.reason == kInterruptedReason || r.reason == kNoConnectionReason;
  }

  void report() const {
    const std::vector<OneBatchRow> rows = one_batch_rows(results_);
    if (lines_) {
      for (const OneBatchRow& row : rows) {
        lines_->write_line(one_batch_summary(row, conditions_, flags_.bench.run_name));
      }
    }
    const std::optional<double> cost =
        flags_.dollars_per_hour > 0 ? std::optional(flags_.dollars_per_hour) : std::nullopt;
    fmt::print("{}\n\n{}", describe(conditions_),
               flags_.bench.markdown ? one_batch_markdown(rows, cost) : one_batch_table(rows));
  }

  const Flags& flags_;
  BenchConditions conditions_;
  OneBatchBench bench_;
  std::unique_ptr<LineWriter> lines_;
  std::vector<OneBatchResult> results_;
  bool warned_ = false;
};

ExitCode run_one_batch(const Flags& flags) {
  watch_interrupts();
  const BenchTarget target = flags.bench.target();
  return Measurement(flags, target).run();
}

}  // namespace

void add_bench_one_batch_command(CLI::App& bench, Run& run) {
  const auto flags = std::make_shared<Flags>();
  flags->bench.seed = 42;
  CLI::App* command = bench.add_subcommand(
      "one-batch", "One batch at a time, in one request each, as SGLang's bench_one_batch_server");
  flags->bench.add(*command);
  command
      ->add_option("--batch-size", flags->batch_sizes,
                   "Batch sizes; one that the list begins with twice is thrown away once")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(1, 65536));
  command->add_option("--input-len", flags->input_lens, "Tokens of each prompt")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("--output-len", flags->output_lens, "Tokens of each answer")
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_flag("--skip-warmup", flags->skip_warmup,
                    "Leave out the warm-up, each batch size once with at most 1024 tokens in and "
                    "16 out (default: warm up)");
  command
      ->add_option("--dollars-per-hour", flags->dollars_per_hour,
                   "What the server costs, for the costs of the Markdown table (default: none)")
      ->check(CLI::PositiveNumber);
  command->callback([=, &run] { run = [=] { return run_one_batch(*flags); }; });
}

}  // namespace cupel
