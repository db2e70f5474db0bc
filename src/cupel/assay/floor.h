// What a fixed accuracy floor with retries does to good and bad cells (assay.md, "Floors").
#pragma once

#include <optional>

namespace cupel {

struct FloorCase {
  int items = 0;
  double score = 0;  // true accuracy in [0, 1]; rounded to a whole number of items
  double floor = 0;  // a run passes if correct / items reaches it
  int retries = 0;   // the cell passes if any of 1 + retries runs does
  // u: a run's count varies as that many fair coins around the score (unstable items at other p
  // count for less than one each), so at most 4 * items * score * (1 - score). nullopt: every item
  // is drawn anew with p = score in each run (the binomial bound).
  std::optional<int> unstable;
};

// Chance that the cell fails, and that it passes; each is accurate also where it is tiny.
// Throws InputError if the case is impossible (score or floor outside [0, 1], u too large for the
// score, no items, negative retries).
double floor_fails(const FloorCase& c);
double floor_passes(const FloorCase& c);

// The highest floor, as a number of correct answers, at which the cell fails with at most the
// chance `false_alarm`; `c.floor` is ignored. 0 where even that is too much. Throws InputError as
// above and unless `false_alarm` is in [0, 1].
int propose_floor(const FloorCase& c, double false_alarm);

}  // namespace cupel
