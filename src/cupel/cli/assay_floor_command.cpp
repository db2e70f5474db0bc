#include <algorithm>
#include <cmath>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/floor.h"
#include "cupel/assay/import.h"
#include "cupel/assay/noise.h"
#include "cupel/cli/assay_commands.h"

namespace cupel {
namespace {

struct Flags {
  std::string records;
  int items = 1319;
  double accuracy = -1;
  std::string unstable;
  double floor = -1;
  int retries = 1;
  double margin = 1;
  double false_alarm = 0.01;
};

struct Cell {
  std::string source;
  int items = 0;
  double accuracy = 0;
  std::vector<int> unstable;
};

Cell from_records(const std::string& path) {
  const std::vector<std::filesystem::path> files = {path};
  const CellOutcomes outcomes = outcomes_from_records(import_results(files, path), path);
  Cell cell{path, static_cast<int>(outcomes.items.size()), outcomes.accuracy(), {}};
  cell.source += fmt::format(", {} repeats", outcomes.repeats());
  if (outcomes.repeats() >= 2) {
    const RunNoise noise = run_noise(outcomes);
    // A count of fair coins cannot vary more than its score allows.
    const int most = static_cast<int>(4 * cell.items * cell.accuracy * (1 - cell.accuracy));
    for (const double u : {noise.unstable95.low, noise.unstable, noise.unstable95.high}) {
      cell.unstable.push_back(std::min(static_cast<int>(std::lround(u)), most));
    }
    cell.unstable.erase(std::unique(cell.unstable.begin(), cell.unstable.end()),
                        cell.unstable.end());
    cell.source += fmt::format("; u = {:.0f} unstable items, 95 % {:.0f} to {:.0f}", noise.unstable,
                               noise.unstable95.low, noise.unstable95.high);
  } else {
    cell.source += "; run noise unknown: it takes two";
  }
  return cell;
}

Cell find_cell(const Flags& flags) {
  Cell cell;
  if (!flags.records.empty()) {
    if (flags.accuracy >= 0) throw InputError("--accuracy", "no records beside it", "both");
    cell = from_records(flags.records);
  } else {
    if (!(flags.accuracy > 0 && flags.accuracy <= 1)) {
      throw InputError("floor", "--records FILE, or --accuracy above 0 and at most 1",
                       flags.accuracy < 0 ? "neither" : fmt::format("{}", flags.accuracy));
    }
    cell = {"as given", flags.items, flags.accuracy, {60, 160, 320}};
    const double most = 4 * flags.items * flags.accuracy * (1 - flags.accuracy);
    std::erase_if(cell.unstable, [&](int u) { return u > most; });
  }
  if (!flags.unstable.empty()) {
    cell.unstable = parse_numbers(flags.unstable, "--unstable", 0);
  }
  return cell;
}

std::string fraction(int correct, int items) {
  return fmt::format("{}/{} = {:.4f}", correct, items, static_cast<double>(correct) / items);
}

ExitCode run_floor(const Flags& flags) {
  const Cell cell = find_cell(flags);
  if (!(flags.margin > 0 && flags.margin < 100 * cell.accuracy)) {
    throw InputError("--margin", "points above 0 and below the accuracy",
                     fmt::format("{}", flags.margin));
  }
  std::vector<std::optional<int>> noises(cell.unstable.begin(), cell.unstable.end());
  noises.emplace_back();
  const auto name = [](const std::optional<int>& u) {
    return u ? fmt::format("u = {}", *u) : std::string("binomial");
  };
  const auto at = [&](const std::optional<int>& u, double lost) {
    return FloorCase{cell.items, cell.accuracy - lost / 100, flags.floor, flags.retries, u};
  };

  // A run noise that the score does not allow shows before anything is printed.
  for (const auto& u : noises) propose_floor(at(u, 0), flags.false_alarm);

  fmt::print("A floor with {} {} at a cell of {} items and a true score of {:.4f}\n({}).\n",
             flags.retries, flags.retries == 1 ? "retry" : "retries", cell.items, cell.accuracy,
             cell.source);
  constexpr auto kRow = "  {:<12}{:>18}{:>26}{:>26}\n";
  const std::string one = fmt::format("passes, {:g} lost", flags.margin);
  const std::string two = fmt::format("passes, {:g} lost", 2 * flags.margin);
  if (flags.floor >= 0) {
    fmt::print(
        "\nFloor {:g}: the chance that the cell fails as it is, and that it passes after it "
        "lost points\n",
        flags.floor);
    fmt::print(kRow, "run noise", "fails as it is", one, two);
    for (const auto& u : noises) {
      fmt::print(kRow, name(u), format_share(floor_fails(at(u, 0))),
                 format_share(floor_passes(at(u, flags.margin))),
                 format_share(floor_passes(at(u, 2 * flags.margin))));
    }
  }
  fmt::print("\nThe highest floor whose chance of a false alarm is at most {}\n",
             format_share(flags.false_alarm));
  fmt::print(kRow, "run noise", "floor", one, two);
  for (const auto& u : noises) {
    const int needed = propose_floor(at(u, 0), flags.false_alarm);
    const auto passes = [&](double lost) {
      FloorCase c = at(u, lost);
      c.floor = static_cast<double>(needed) / cell.items;
      return format_share(floor_passes(c));
    };
    fmt::print(kRow, name(u), fraction(needed, cell.items), passes(flags.margin),
               passes(2 * flags.margin));
  }
  fmt::print(
      "\nBinomial: every item drawn anew in each run, the most that run noise can be. The "
      "score is taken as known;\na floor knows no reference, and its retries are looks that "
      "nobody charges. See cupel assay compare.\n");
  return ExitCode::kPass;
}

}  // namespace

void add_assay_floor_command(CLI::App& assay, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_statistics_command(
      assay, "floor", "What a fixed accuracy floor with retries does to good and bad cells");
  command->add_option("--records", flags->records,
                      "Results of the cell, per sample: its score and run noise (default: given by "
                      "--accuracy and --unstable)");
  command->add_option("--items", flags->items, "Items, without --records")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--accuracy", flags->accuracy,
                      "True score in (0, 1], without --records (default: none)");
  command->add_option(
      "--unstable", flags->unstable,
      "Unstable items u: a list 60,160 or range 60..320 (default: from the records, "
      "else 60,160,320)");
  command
      ->add_option("--floor", flags->floor,
                   "Accuracy that a run must reach, in [0, 1] (default: only propose one)")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--retries", flags->retries, "Further runs that may reach it")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--margin", flags->margin, "Loss to be noticed, in points")
      ->capture_default_str();
  command
      ->add_option("--false-alarm", flags->false_alarm,
                   "Largest chance that a cell that lost nothing fails, in [0, 1]")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->callback([=, &run] { run = [=] { return run_floor(*flags); }; });
}

}  // namespace cupel
