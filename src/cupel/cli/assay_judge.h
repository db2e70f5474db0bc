// Takes the looks of an assay: one after the repeats that were asked for, or several until it is
// decided. The looks at growing records are charged through the ledger beside each candidate's
// records (assay/looks_ledger.h).
#pragma once

#include <string>
#include <vector>

#include "cupel/assay/sequential.h"
#include "cupel/cli/assay_run.h"

namespace cupel {

struct AssayJudgement {
  LookPlan plan;
  SequentialBound bound = SequentialBound::kGroupSequential;
  std::vector<LookDecision> decisions;  // of every cell but the reference, in order
  std::vector<CellOutcomes> outcomes;   // of every cell, as they were judged last
};

class AssayJudge {
 public:
  // `family` holds the p-values of gating probes. Without --resume the ledgers of former records
  // are removed; with it their looks are charged and their plan holds. Throws InputError for a
  // senseless rule, and where the study on the disk was begun with another margin.
  AssayJudge(const AssayFlags& flags, const Task& task, const std::vector<AssayCell>& cells,
             std::size_t reference);

  // Runs the cells and judges them.
  AssayJudgement run(CellRunner& runner, std::vector<double> family = {});

 private:
  bool keeps_ledger() const;
  void read_ledgers();
  void keep_look(const CellRunner& runner, std::size_t candidate, const TakenLook& look) const;
  ArmAtLook arm(const CellRunner& runner, std::size_t cell, int repeats) const;

  const AssayFlags& flags_;
  const Task& task_;
  const std::vector<AssayCell>& cells_;
  std::size_t reference_;
  std::vector<std::size_t> candidates_;
  LookRule rule_;
  std::vector<std::vector<TakenLook>> taken_;  // by candidate
};

}  // namespace cupel
