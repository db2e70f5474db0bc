// The probes of an assay: run on every cell, compared with the reference, gating where a margin was
// declared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cupel/assay/probe_verdict.h"
#include "cupel/assay/sequential.h"
#include "cupel/cli/assay_run.h"

namespace cupel {

class AssayProbes {
 public:
  // Throws InputError for probes and options that make no sense.
  explicit AssayProbes(const AssayFlags& flags);

  bool any() const { return !requests_.empty(); }

  // Probes all cells and compares them. Stray looks at the first pass of the task, which is run
  // for it.
  void run(CellRunner& runner, const Task& task, const std::vector<AssayCell>& cells,
           std::size_t reference);

  std::vector<double> gating() const { return gating_p_values(comparisons_); }

  const std::vector<ProbeComparison>& comparisons() const { return comparisons_; }

  // Decides beside the accuracy comparisons, as one family.
  void decide(std::span<const LookDecision> accuracy, double alpha);

  // Adds the verdicts of those that gate.
  void add_verdicts(std::vector<Decision>& decisions) const;

  std::string render() const;

 private:
  struct Probed {
    std::string cell;
    ProbeResult result;
  };

  const AssayFlags& flags_;
  std::vector<ProbeRequest> requests_;
  std::vector<Probed> probed_;
  std::vector<ProbeComparison> comparisons_;
};

}  // namespace cupel
