#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/counts.h"
#include "cupel/assay/floor.h"
#include "cupel/assay/plan.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/verdict.h"
#include "cupel/cli/assay_commands.h"

namespace cupel {
namespace {

struct Flags {
  std::string reference;
  std::string candidate;
  std::string control_reference;
  std::string control_candidate;
  double margin = 0;
  double floor = -1;
  int retries = 1;
};

constexpr int kUnstable[] = {60, 160, 320};

// "1188/1319,1175/1319".
RunCounts parse_runs(const std::string& text, const std::string& flag) {
  RunCounts arm{flag, 0, {}};
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const char* stop = text.data() + end;
    int correct = 0;
    int items = 0;
    const auto first = std::from_chars(text.data() + begin, stop, correct);
    const bool slash = first.ec == std::errc() && first.ptr != stop && *first.ptr == '/';
    const auto second = slash ? std::from_chars(first.ptr + 1, stop, items) : first;
    if (!slash || second.ec != std::errc() || second.ptr != stop) {
      throw InputError(flag, "runs as CORRECT/ITEMS, separated by commas", text);
    }
    if (arm.items != 0 && items != arm.items) {
      throw InputError(flag, "the same number of items in every run", text);
    }
    arm.items = items;
    arm.correct.push_back(correct);
    begin = end + 1;
  }
  return arm;
}

double mean_correct(const RunCounts& arm) {
  return std::accumulate(arm.correct.begin(), arm.correct.end(), 0.0) /
         static_cast<double>(arm.correct.size());
}

std::string describe(const RunCounts& arm) {
  std::string runs;
  for (const int correct : arm.correct) {
    runs += fmt::format("{}{}/{}", runs.empty() ? "" : ", ", correct, arm.items);
  }
  return fmt::format("{}: {:.2f} % in {} {}", runs, 100 * mean_correct(arm) / arm.items,
                     arm.correct.size(), arm.correct.size() == 1 ? "run" : "runs");
}

Verdict verdict_of(double loss, double error, double margin) {
  if (loss + kDecisionZ * error < margin) return Verdict::kPass;
  return loss - kDecisionZ * error > 0 ? Verdict::kRegression : Verdict::kInconclusive;
}

void print_noise_assumptions(const CountComparison& c, const RunCounts& reference,
                             const RunCounts& candidate, double margin) {
  fmt::print("\n3. On these items alone, had u of them been unstable in both arms (coins):\n");
  for (const int u : kUnstable) {
    if (u > reference.items) continue;
    const Study study{reference.items, static_cast<double>(u), 0,
                      static_cast<int>(reference.correct.size()),
                      static_cast<int>(candidate.correct.size())};
    const double error = run_error(study);
    fmt::print("   u = {:<4} standard error {:.2f}, p = {} against no loss, {} against {:g}: {}\n",
               u, error, p_value(normal_cdf(-c.loss / error)),
               p_value(normal_cdf((margin - c.loss) / error)), margin,
               verdict_name(verdict_of(c.loss, error, margin)));
  }
}

void print_plan(const CountComparison& c, int items, double margin) {
  fmt::print(
      "\nWhat would settle it: per-item records with repeats in both arms, over at least two "
      "launches of each.\n"
      "Repeats in each arm for 80 % (at 5 %, and at 5 % / 4 for looks after 1, 2, 4, 8 repeats):\n"
      "  {:>8}  {:>22}  {:>28}\n",
      "u", "PASS without a loss", fmt::format("REGRESSION at {:.2f} points", c.loss));
  for (const int u : kUnstable) {
    if (u > items) continue;
    const auto shown = [&](double alpha) {
      if (c.loss < margin) return std::string("-");
      // As if each lost item were lost for good.
      const Study study{items, static_cast<double>(u), c.loss / 100 * items, 1, 1};
      const auto repeats = repeats_to_regression(study, c.loss, 64, alpha);
      return repeats ? std::to_string(*repeats) : std::string("more items");
    };
    fmt::print("  {:>8}  {:>22}  {:>28}\n", u,
               fmt::format("{}, {}", repeats_to_pass(items, u, margin),
                           repeats_to_pass(items, u, margin, 0, kAlpha / 4)),
               fmt::format("{}, {}", shown(kAlpha), shown(kAlpha / 4)));
  }
}

void print_floor(const Flags& flags, const RunCounts& reference, const RunCounts& candidate) {
  const double good = mean_correct(reference) / reference.items;
  const double now = mean_correct(candidate) / candidate.items;
  const double lost = good - flags.margin / 100;
  fmt::print("\nWhat a floor of {:g} with {} {} says of such cells:\n", flags.floor, flags.retries,
             flags.retries == 1 ? "retry" : "retries");
  fmt::print("  {:<12}{:>18}{:>18}{:>18}\n", "run noise", fmt::format("{:.4f} fails", good),
             fmt::format("{:.4f} passes", now), fmt::format("{:.4f} passes", lost));
  std::vector<std::optional<int>> noises(std::begin(kUnstable), std::end(kUnstable));
  noises.emplace_back();
  for (const auto& u : noises) {
    const double most = 4 * reference.items * good * (1 - good);
    if (u && *u > most) continue;
    const auto at = [&](double score) {
      return FloorCase{reference.items, score, flags.floor, flags.retries, u};
    };
    fmt::print("  {:<12}{:>18}{:>18}{:>18}\n", u ? fmt::format("u = {}", *u) : "binomial",
               format_share(floor_fails(at(good))), format_share(floor_passes(at(now))),
               format_share(floor_passes(at(lost))));
  }
}

ExitCode run_counts(const Flags& flags) {
  if (!(flags.margin > 0 && flags.margin <= 100)) {
    throw InputError("--margin", "points above 0 and at most 100", fmt::format("{}", flags.margin));
  }
  const RunCounts reference = parse_runs(flags.reference, "--reference");
  const RunCounts candidate = parse_runs(flags.candidate, "--candidate");
  const CountComparison c = compare_counts(reference, candidate, flags.margin);
  if (flags.control_reference.empty() != flags.control_candidate.empty()) {
    throw InputError("--control-reference and --control-candidate", "both or neither", "one");
  }
  std::optional<CountInteraction> crossed;
  if (!flags.control_reference.empty()) {
    crossed = interaction_counts(reference, candidate,
                                 parse_runs(flags.control_reference, "--control-reference"),
                                 parse_runs(flags.control_candidate, "--control-candidate"));
  }

  const Verdict verdict = verdict_of(c.loss, c.standard_error, flags.margin);
  fmt::print("Reference  {}\nCandidate  {}\nLoss {:.2f} points; margin {:g}.\n",
             describe(reference), describe(candidate), c.loss, flags.margin);
  fmt::print(
      "\n1. Unpaired, every item drawn anew in every run (binomial: the most that run noise on the "
      "same items can be):\n"
      "   standard error at most {:.2f}, 95 % {:.2f} to {:.2f}\n"
      "   p = {} against no loss, {} against a loss of {:g}: {}{}\n",
      c.standard_error, c.interval95.low, c.interval95.high, p_value(c.p_zero), p_value(c.p_margin),
      flags.margin, verdict_name(verdict),
      verdict == Verdict::kInconclusive ? "" : " for these launches");
  if (c.p_spread) {
    fmt::print(
        "\n2. From the spread between runs of one arm alone ({} degree{} of freedom, t test):\n"
        "   p = {} against no loss; unstable items u = {:.0f}, 95 % {:.0f} to {:.0f}{}\n",
        c.spread_degrees, c.spread_degrees == 1 ? "" : "s", p_value(*c.p_spread),
        c.unstable.value_or(0), c.unstable95.low, c.unstable95.high,
        c.unstable95.high >= reference.items ? " (all of them)" : "");
  } else {
    fmt::print(
        "\n2. From the spread between runs: not possible without two runs of one arm that "
        "differ.\n");
  }
  print_noise_assumptions(c, reference, candidate, flags.margin);
  if (crossed) {
    fmt::print(
        "\n4. Interaction, the loss less that of the control pair ({}; {}):\n"
        "   {:.2f} +- {:.2f} points, one-sided p = {} (binomial)\n",
        flags.control_reference, flags.control_candidate, crossed->estimate,
        crossed->standard_error, p_value(crossed->p_one_sided));
  }
  fmt::print(
      "\nCounts cannot show: which items changed (pairing makes the standard error smaller, by how "
      "much is unknown);\nhow many flipped each way; u, but for the spread above; how launches of "
      "the server differ, since runs on one\nserver share theirs.\n");
  print_plan(c, reference.items, flags.margin);
  if (flags.floor >= 0) print_floor(flags, reference, candidate);

  switch (verdict) {
    case Verdict::kPass:
      return ExitCode::kPass;
    case Verdict::kRegression:
      return ExitCode::kRegression;
    case Verdict::kInconclusive:
      break;
  }
  return ExitCode::kInconclusive;
}

}  // namespace

void add_assay_counts_command(CLI::App& assay, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_statistics_command(
      assay, "counts", "A verdict from bare counts, and what counts cannot show");
  command->add_option("--reference", flags->reference, "Runs as CORRECT/ITEMS,CORRECT/ITEMS")
      ->required();
  command->add_option("--candidate", flags->candidate, "Likewise; the same number of items")
      ->required();
  command->add_option("--margin", flags->margin, "Largest loss that may pass, in points")
      ->required();
  command->add_option("--control-reference", flags->control_reference,
                      "The reference under another factor, for the interaction (default: none)");
  command->add_option("--control-candidate", flags->control_candidate,
                      "The candidate under that factor (default: none)");
  command
      ->add_option("--floor", flags->floor,
                   "Also say what this accuracy floor does, in [0, 1] (default: none)")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--retries", flags->retries, "Retries of that floor")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->callback([=, &run] { run = [=] { return run_counts(*flags); }; });
}

}  // namespace cupel
