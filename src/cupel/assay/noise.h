// Run-to-run noise within one cell, from its repeats (assay.md, "Estimand"; u = 4 * sum p(1-p)).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/assay/interval.h"
#include "cupel/assay/outcomes.h"
#include "cupel/eval/record.h"

namespace cupel {

// How often two repeats of an item agree, over all items and all pairs of repeats.
struct Agreement {
  std::int64_t pairs = 0;
  std::int64_t differing = 0;
  // Share of differing pairs, in [0, 1], with a two-sided 95 % interval by item. Where no pair
  // differs `low` is 0 and `high` the one-sided 95 % upper bound: no difference seen in k pairs is
  // a rate of at most 1 - 0.05^(1/k), about 3/k, and not a rate of 0.
  double rate = 0;
  Interval rate95;
  // The k of that bound. Pairs of one item share its repeats: only items * floor(repeats / 2) of
  // them are independent.
  std::int64_t independent_pairs = 0;

  double total_agreement() const { return 1 - rate; }
};

// Pairs of answers to one item.
struct PairCount {
  std::int64_t pairs = 0;
  std::int64_t differing = 0;
};

// From the pairs of each item, as many for every item (at least one), of which
// `independent_of_item` share no answer. Throws InputError if there are no items.
Agreement agreement_of(std::span<const PairCount> items, std::int64_t independent_of_item);

struct RunNoise {
  int items = 0;
  int repeats = 0;
  int disagreeing = 0;  // items whose repeats are not all right or all wrong
  // u on these items, unbiased, with a 95 % interval; where `disagreeing` is 0, `high` is the
  // one-sided 95 % upper bound.
  double unstable = 0;
  Interval unstable95;
  // Standard deviation of one run's score, in points: as the items imply it were runs independent
  // within and between items, and as whole-run scores show it (with its 95 % interval).
  double deviation_by_items = 0;
  double deviation_by_runs = 0;
  Interval deviation_by_runs95;
  // Two-sided p-value of "the two are the same" (chi-squared, repeats - 1 degrees of freedom, with
  // a correction for whole scores);
  // nullopt where no item disagrees. A shared run or launch effect makes runs differ by more.
  std::optional<double> p_same;
};

inline constexpr double kSharedEffectLevel = 0.01;

// Throws InputError unless there are items and at least two repeats.
RunNoise run_noise(const CellOutcomes& outcomes);

// Agreement of the whole text, and of the extracted answer (two answers without a digit agree).
// Throws InputError as outcomes_from_records() does, and with fewer than two repeats.
Agreement text_agreement(std::span<const Record> records, const std::string& where);
Agreement answer_agreement(std::span<const Record> records, const std::string& where);

// True where there are at least two repeats and every item has the same text in all of them: such
// passes tell no more than one of them (assay.md, "Looking more than once").
bool identical_passes(std::span<const Record> records);

// The first `repeats` repeats alone; 1 <= repeats <= outcomes.repeats().
CellOutcomes first_repeats(const CellOutcomes& outcomes, int repeats);

// What a reader must know, one sentence each.
std::vector<std::string> notes(const RunNoise& noise);

}  // namespace cupel
