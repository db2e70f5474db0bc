// Comparing cells of which only the number of correct answers is known (assay.md, "The seed case
// from counts alone"). Unpaired: counts show neither which items changed nor launch-to-launch
// variance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cupel/assay/interval.h"

namespace cupel {

struct RunCounts {
  std::string name;
  int items = 0;
  std::vector<int> correct;  // one for each run, in [0, items]
};

// Points; a positive loss means that the candidate is worse.
struct CountComparison {
  double loss = 0;
  double standard_error = 0;  // binomial: an upper bound of the run noise on a fixed item set
  Interval interval95;
  double p_zero = 1;    // one-sided, against a loss of 0
  double p_margin = 1;  // one-sided, against a loss of the margin
  // One-sided t test from the spread between runs of the same arm alone; needs two runs in an arm
  // that differ.
  std::optional<double> p_spread;
  int spread_degrees = 0;
  // Effective unstable items from that spread, with a 95 % interval cut at the number of items.
  std::optional<double> unstable;
  Interval unstable95;
};

// Throws InputError if an arm has no run, a count is out of range, or the arms differ in items.
CountComparison compare_counts(const RunCounts& reference, const RunCounts& candidate,
                               double margin);

struct CountInteraction {
  double estimate = 0;        // loss under A less loss under B
  double standard_error = 0;  // binomial
  double p_one_sided = 1;
};

CountInteraction interaction_counts(const RunCounts& reference_a, const RunCounts& candidate_a,
                                    const RunCounts& reference_b, const RunCounts& candidate_b);

}  // namespace cupel
