// The full calibration of the decision rule: error rates, coverage and power over all settings,
// each from many studies. Prints the table and exits 1 if a bound is exceeded. `make check-long`.
//   calibration_long [STUDIES]
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "assay/simulation.h"
#include <fmt/format.h>

#include "cupel/assay/sequential_plan.h"

namespace cupel::test {
namespace {

struct Line {
  std::string text;
  bool ok = true;
};

struct Cell {
  std::string section;
  std::function<Line(int studies, std::uint64_t seed)> run;
};

std::string describe(const Truth& t) {
  std::string text = fmt::format("u {:>3.0f}{}  flipped {:>2}  lost {:>2}", t.unstable,
                                 t.uniform ? " uniform" : " at 1/2 ", t.flipped, t.dead);
  if (t.spread) text += " spread";
  return fmt::format("{:<42}", text);
}

const char* mark(bool ok) {
  return ok ? "" : "  EXCEEDED";
}

// With items that only flip for good the loss is on a coarse lattice: the specification allows 6.5.
double limit(const Truth& t) {
  return t.flipped > 0 ? 0.065 : 0.057;
}

constexpr int kMarginItems = 14;
constexpr double kMargin = 100.0 * kMarginItems / kItems;

std::vector<Truth> truths(bool flips) {
  std::vector<Truth> all;
  for (const double u : {0.0, 5.0, 60.0, 160.0, 320.0}) {
    for (const bool uniform : {false, true}) {
      if (u == 0 && uniform) continue;
      for (const int flipped : {0, 66}) {
        if (flipped == 0 || flips)
          all.push_back({.unstable = u, .uniform = uniform, .flipped = flipped});
      }
    }
  }
  return all;
}

void add_error_rates(std::vector<Cell>& cells) {
  constexpr std::pair<int, int> kRepeats[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {8, 8}, {8, 1}};
  for (const Truth& truth : truths(true)) {
    for (const auto& [a, b] : kRepeats) {
      cells.push_back({"Error rates and coverage, one look",
                       [truth, a = a, b = b](int studies, std::uint64_t seed) {
                         const Rates none = simulate(truth, a, b, kMargin, studies, seed);
                         Truth lost = truth;
                         lost.dead = kMarginItems;
                         lost.balanced = true;
                         const Rates at = simulate(lost, a, b, kMargin, studies, seed + 1);
                         const bool pass_ok = at.pass <= limit(truth);
                         bool ok = none.regression <= limit(truth) && pass_ok;
                         std::string coverage = "     -      -";
                         if (!std::isnan(none.set_coverage) && truth.unstable > 0) {
                           ok = ok && none.set_coverage >= 0.94;
                           if (truth.unstable >= 60) ok = ok && none.set_width <= 1.15;
                           coverage = fmt::format("{:6.2f} {:6.3f}", 100 * none.set_coverage,
                                                  none.set_width);
                         }
                         return Line{fmt::format("{}{}/{}  REGRESSION at 0 {:5.2f}  PASS at m "
                                                 "{:5.2f}  coverage, width {}{}",
                                                 describe(truth), a, b, 100 * none.regression,
                                                 100 * at.pass, coverage, mark(ok)),
                                     ok};
                       }});
    }
  }
}

void add_looks(std::vector<Cell>& cells) {
  for (const auto bound : {SequentialBound::kGroupSequential, SequentialBound::kAnytime}) {
    const bool anytime = bound == SequentialBound::kAnytime;
    for (const Truth& truth : truths(!anytime)) {
      cells.push_back(
          {anytime ? "Looks after 1, 2, .. 16 repeats, anytime bound"
                   : "Looks after 1, 2, 4, 8 repeats, group-sequential bound",
           [truth, bound, anytime](int studies, std::uint64_t seed) {
             LookRule rule{.margin = kMargin, .plan = {}, .bound = bound};
             if (anytime) {
               rule.plan.repeats.clear();
               for (int r = 1; r <= 16; ++r) rule.plan.repeats.push_back(r);
             }

             const SequentialRates none = simulate_looks(truth, rule, 0, studies, seed);
             Truth lost = truth;
             lost.dead = kMarginItems;
             lost.balanced = true;
             const SequentialRates at = simulate_looks(lost, rule, 0, studies, seed + 1);
             const bool pass_ok = at.pass <= 0.057;
             const bool cover_ok = anytime || truth.unstable == 0 || none.coverage >= 0.95;
             const bool ok = none.regression <= 0.057 && pass_ok && cover_ok;
             return Line{
                 fmt::format("{}REGRESSION at 0 {:5.2f}  PASS at m {:5.2f}  PASS at 0 "
                             "{:6.2f}  mean repeats {:4.1f}  coverage {}{}",
                             describe(truth), 100 * none.regression, 100 * at.pass, 100 * none.pass,
                             none.repeats,
                             anytime ? "     -" : fmt::format("{:6.2f}", 100 * none.coverage),
                             mark(ok)),
                 ok};
           }});
    }
  }
}

void add_power(std::vector<Cell>& cells) {
  for (const double u : {60.0, 160.0, 320.0}) {
    for (const int dead : {kMarginItems, 26, 40}) {
      for (const bool spread : {false, true}) {
        const Truth truth{.unstable = u, .dead = dead, .spread = spread};
        for (const int repeats : {1, 2, 4, 8}) {
          cells.push_back(
              {"Power, one look: simulated and planned",
               [truth, repeats](int studies, std::uint64_t seed) {
                 // As `cupel assay plan` says. regression_power() leaves out that PASS comes first:
                 // at a loss of exactly the margin it is up to 5 points too high.
                 const Study study{kItems, truth.mean_unstable(), truth.changed_squares(), 1, 1};
                 const LookPlan one{.repeats = {repeats}};
                 const double plan =
                     sequential_outcome(study, truth.loss(), kMargin, one).regression;
                 const double got =
                     simulate(truth, repeats, repeats, kMargin, studies, seed).regression;
                 const bool ok = std::abs(got - plan) <= 0.03;
                 return Line{fmt::format("{}{} repeats  REGRESSION {:6.2f}  plan "
                                         "{:6.2f}{}",
                                         describe(truth), repeats, 100 * got, 100 * plan, mark(ok)),
                             ok};
               }});
        }
        for (const int family : {1, 7}) {
          cells.push_back(
              {"Power, looks after 1, 2, 4, 8 repeats: simulated and planned",
               [truth, family](int studies, std::uint64_t seed) {
                 const LookRule rule{.margin = kMargin, .plan = {}};
                 const Study study{kItems, truth.mean_unstable(), truth.changed_squares(), 1, 1};
                 const Outcome plan =
                     sequential_outcome(study, truth.loss(), kMargin, rule.plan, family);
                 const SequentialRates got = simulate_looks(truth, rule, family - 1, studies, seed);
                 const bool ok = std::abs(got.regression - plan.regression) <= 0.03;
                 return Line{
                     fmt::format("{}{} cells  REGRESSION {:6.2f}  plan {:6.2f}  mean "
                                 "repeats {:4.1f}  plan {:4.1f}{}",
                                 describe(truth), family, 100 * got.regression,
                                 100 * plan.regression, got.repeats, plan.repeats, mark(ok)),
                     ok};
               }});
        }
      }
    }
  }
}

void add_new_items(std::vector<Cell>& cells) {
  for (const double u : {5.0, 60.0, 160.0, 320.0}) {
    for (const double changed : {0.0, 30.0}) {
      for (const int repeats : {1, 2, 8}) {
        cells.push_back({"Coverage of the new-items 95 % interval, items redrawn",
                         [=](int studies, std::uint64_t seed) {
                           const double got =
                               new_items_coverage(u, changed, repeats, studies, seed);
                           const bool ok = got >= 0.94;
                           return Line{fmt::format("u {:>3.0f}  changed {:>2.0f}  {} repeats  "
                                                   "coverage {:6.2f}{}",
                                                   u, changed, repeats, 100 * got, mark(ok)),
                                       ok};
                         }});
      }
    }
  }
}

int run(int studies) {
  std::vector<Cell> cells;
  add_error_rates(cells);
  add_looks(cells);
  add_power(cells);
  add_new_items(cells);

  std::vector<Line> lines(cells.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < cells.size(); i = next++) {
      lines[i] = cells[i].run(studies, 1000 + 10 * i);
    }
  };
  std::thread other(work);
  work();
  other.join();

  fmt::print(
      "{} studies a cell, {} items, margin m = {:.3f} points ({} items); rates in per cent.\n"
      "Flipped items change for good, by a coin each (REGRESSION at 0), or half of them each way, "
      "so "
      "that the loss of this item set is m (PASS at m).\n",
      studies, kItems, kMargin, kMarginItems);
  int exceeded = 0;
  std::vector<std::string> sections;
  for (const Cell& cell : cells) {
    if (std::find(sections.begin(), sections.end(), cell.section) == sections.end()) {
      sections.push_back(cell.section);
    }
  }
  for (const std::string& section : sections) {
    fmt::print("\n{}\n", section);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].section != section) continue;
      fmt::print("  {}\n", lines[i].text);
      exceeded += lines[i].ok ? 0 : 1;
    }
  }
  fmt::print("\n{} settings, {} exceed their bound\n", cells.size(), exceeded);
  return exceeded == 0 ? 0 : 1;
}

}  // namespace
}  // namespace cupel::test

int main(int argc, char** argv) {
  const int studies = argc > 1 ? std::atoi(argv[1]) : 10000;
  if (studies < 1) {
    fmt::print(stderr, "calibration_long [STUDIES]\n");
    return 4;
  }
  return cupel::test::run(studies);
}
