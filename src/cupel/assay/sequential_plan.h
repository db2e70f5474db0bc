// Power of a study that looks more than once (assay.md, "Planning" and "Looking more than once").
#pragma once

#include "cupel/assay/plan.h"
#include "cupel/assay/sequential.h"

namespace cupel {

struct Outcome {
  double pass = 0;
  double regression = 0;
  double repeats = 0;  // mean, in each arm

  double inconclusive() const { return 1 - pass - regression; }
};

// What the verdicts of the group-sequential bound come to at a true loss (points), with this margin
// and `cells` comparisons in the Holm family (each at alpha / (looks * cells)): the loss after r
// repeats is `loss` plus a random walk of run noise, whose density is carried from look to look
// without the part that has been decided. Of `study` the repeats are ignored: the plan has them.
// Does not stop early where repeats cannot decide. Throws InputError for a senseless plan or study.
Outcome sequential_outcome(const Study& study, double loss, double margin, const LookPlan& plan,
                           int cells = 1);

}  // namespace cupel
