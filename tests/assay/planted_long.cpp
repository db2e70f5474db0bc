// A planted nondeterministic endpoint over 100 seeds in each of several settings. Prints the counts
// and exits 1 if one is out of its bound. `make check-long`.
#include "assay/planted_study.h"
#include <fmt/format.h>

int main() {
  bool ok = true;
  fmt::print("{:>8}  {:>5}  {:>7}  {:>7}  {:>12}\n", "unstable", "rate", "covered", "called",
             "false alarms");
  const auto settings = {std::pair{60, 0.5}, {160, 0.5}, {320, 0.5}, {200, 0.2}, {600, 0.1}};
  for (const auto& [unstable, rate] : settings) {
    const auto counts = cupel::test::run_planted_studies(unstable, rate, 100, 1);
    const bool good = counts.covered >= 90 && counts.called >= 70 && counts.false_alarms <= 11;
    ok = ok && good;
    fmt::print("{:>8}  {:>5}  {:>7}  {:>7}  {:>12}{}\n", unstable, rate, counts.covered,
               counts.called, counts.false_alarms, good ? "" : "  EXCEEDED");
  }
  return ok ? 0 : 1;
}
