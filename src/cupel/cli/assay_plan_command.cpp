#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/sequential_plan.h"
#include "cupel/cli/assay_commands.h"

namespace cupel {
namespace {

struct Flags {
  int items = 1319;
  double accuracy = 0.925;
  std::string unstable = "60..320";
  double margin = 0;
  int cells = 1;
  int looks = 1;
};

// As many looks as asked, each at twice the repeats of the one before, the last at `last` or more.
LookPlan doubling(int looks) {
  LookPlan plan;
  plan.repeats.clear();
  for (int k = 0; k < looks; ++k) plan.repeats.push_back(1 << k);
  return plan;
}

void print_row(const Flags& flags, int unstable) {
  const double level = kAlpha / (flags.cells * flags.looks);
  const int to_pass = repeats_to_pass(flags.items, unstable, flags.margin, 0, level);
  LookPlan plan = doubling(flags.looks);
  if (flags.looks == 1) plan.repeats = {to_pass};
  const auto regression = [&](double points, double share_of_item) {
    // A loss of so many items, each by this share: H = items lost * share.
    const double lost = points / 100 * flags.items;
    const Study study{flags.items, static_cast<double>(unstable), lost * share_of_item, 1, 1};
    return sequential_outcome(study, points, flags.margin, plan, flags.cells).regression;
  };
  const Study same{flags.items, static_cast<double>(unstable), 0, 1, 1};
  const Outcome none = sequential_outcome(same, 0, flags.margin, plan, flags.cells);
  fmt::print("  {:>5}  {:>8}  {:>12}  {:>9.1f}", unstable, to_pass, format_share(none.pass),
             none.repeats);
  for (const double points : {flags.margin, 2 * flags.margin, 3 * flags.margin}) {
    fmt::print("  {:>7} {:>7}", format_share(regression(points, 1)),
               format_share(regression(points, 0.25)));
  }
  fmt::print("\n");
}

ExitCode run_plan(const Flags& flags) {
  if (!(flags.margin > 0 && flags.margin <= 100.0 / 3)) {
    throw InputError("--margin", "points above 0 and at most 33", fmt::format("{}", flags.margin));
  }
  if (!(flags.accuracy > 0 && flags.accuracy < 1)) {
    throw InputError("--accuracy", "a share between 0 and 1", fmt::format("{}", flags.accuracy));
  }
  const std::vector<int> unstable = parse_numbers(flags.unstable, "--unstable", 0);
  const double most = 4 * flags.items * flags.accuracy * (1 - flags.accuracy);
  if (unstable.back() > most + 1) {
    throw InputError(
        "--unstable",
        fmt::format("at most {:.0f} unstable items at an accuracy of {:g}", most, flags.accuracy),
        std::to_string(unstable.back()));
  }
  fmt::print("{} items, margin {:g}, {} {} against one reference, {} {} at {:.2f} % each.\n",
             flags.items, flags.margin, flags.cells, flags.cells == 1 ? "cell" : "cells",
             flags.looks, flags.looks == 1 ? "look" : "looks", 100 * kAlpha / flags.looks);
  fmt::print("repeats: in each arm, for 80 % PASS without a loss at 5 % / ({} x {}).\n",
             flags.cells, flags.looks);
  if (flags.looks == 1) {
    fmt::print(
        "Chances with that many repeats; REGRESSION at a loss of m, 2m, 3m: of whole items, "
        "and spread over four times\nas many.\n\n");
  } else {
    fmt::print(
        "Chances with looks after 1, 2, .. {} repeats, and the mean number taken; REGRESSION "
        "at a loss of m, 2m, 3m: of whole\nitems, and spread over four times as many.\n\n",
        1 << (flags.looks - 1));
  }
  fmt::print("  {:>5}  {:>8}  {:>12}  {:>9}  {:>15}  {:>15}  {:>15}\n", "u", "repeats", "PASS at 0",
             "mean", fmt::format("{:g} lost", flags.margin),
             fmt::format("{:g} lost", 2 * flags.margin),
             fmt::format("{:g} lost", 3 * flags.margin));
  for (const int u : unstable) print_row(flags, u);

  const double level = kAlpha / (flags.cells * flags.looks);
  int changed = 0;
  while (!needs_more_items(flags.items, changed, flags.margin, level)) {
    if (++changed > flags.items) break;
  }
  if (changed == 0) {
    fmt::print("\nToo few items for this margin whatever the noise: {} would do.\n",
               items_needed(flags.items, 0, flags.margin, level));
  } else {
    fmt::print(
        "\nFrom {} items that changed for good (H, either way) on, repeats alone cannot show a "
        "loss of {:g}: only more items can.\n",
        changed, flags.margin);
  }
  fmt::print("u = 0 (a deterministic engine): one repeat says all.\n");
  fmt::print("At 5 % for each night's family, chance alone gives {:.0f} REGRESSIONs a year.\n",
             365 * kAlpha);
  return ExitCode::kPass;
}

}  // namespace

void add_assay_plan_command(CLI::App& assay, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_statistics_command(
      assay, "plan", "How many repeats a study needs, and what it can then tell");
  command->add_option("--items", flags->items, "Items")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--accuracy", flags->accuracy,
                   "Accuracy in (0, 1); it limits how many items can be unstable")
      ->capture_default_str();
  command
      ->add_option("--unstable", flags->unstable,
                   "Unstable items u: a list 60,160,320 or a doubling range")
      ->capture_default_str();
  command->add_option("--margin", flags->margin, "Largest loss that may pass, in points")
      ->required();
  command->add_option("--cells", flags->cells, "Cells compared with the reference (Holm)")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  command->add_option("--looks", flags->looks, "Looks, after 1, 2, 4, .. repeats")
      ->capture_default_str()
      ->check(CLI::Range(1, 8));
  command->callback([=, &run] { run = [=] { return run_plan(*flags); }; });
}

}  // namespace cupel
