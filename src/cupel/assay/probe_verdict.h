// Probes of two cells compared prompt by prompt, and their verdicts where a margin was declared
// (assay.md, "Several cells": a gating probe is one more member of the family).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/assay/interval.h"
#include "cupel/assay/verdict.h"
#include "cupel/eval/probe/probe.h"

namespace cupel {

// Figures are in percent of prompts, those of nll in nats a token.
struct ProbeFigure {
  double mean = 0;
  Interval interval95;  // shares of single answers: Wilson; else by prompt, Student's t
};

ProbeFigure probe_figure(const ProbeResult& result);

struct ProbeComparison {
  ProbeKind kind = ProbeKind::kPhase;
  std::string reference;
  std::string candidate;
  int items = 0;
  // Mean fault of the candidate less that of the reference, in points or nats; positive: worse.
  double loss = 0;
  // Over new prompts: sqrt((sum D^2 + c - (sum D)^2 / n)) / n, with c = 2 squared faults for shares
  // as in SE_new, and 0 for nll, divided by n - 1 there.
  double standard_error = 0;
  Interval bounds;      // one-sided, 5 % each; Student's t with n - 1 degrees of freedom
  Interval interval95;  // two-sided, for display
  double p = 1;         // one-sided, against no loss

  std::optional<double> margin;  // declared; without one there is no verdict
  std::optional<Verdict> verdict;
  double p_holm = 1;
  std::string remedy;  // what would decide, for INCONCLUSIVE
};

// Of the probe phase the prompts that both hold count. Throws InputError if the cells hold
// different prompts (it says which), or fewer than two.
ProbeComparison compare_probes(const ProbeResult& reference, const ProbeResult& candidate,
                               const std::string& reference_name,
                               const std::string& candidate_name);

// PASS where the upper bound is below the margin; REGRESSION where the lower one is above 0 and
// Holm's p over the gating probes and `family`, the p-values of the accuracy comparisons, is at
// most alpha. Comparisons without a margin stay without a verdict and out of the family. Throws
// InputError for a margin that is not positive, and for one on repeatability: texts that differ are
// no regression.
void decide_probes(std::span<ProbeComparison> comparisons, std::span<const double> family,
                   double alpha = kAlpha);

// Digits behind the point that a figure of this probe is shown with.
int probe_digits(ProbeKind kind);
// "phase: 1.20 points, bounds at 5 % each side -0.10 to 2.50, p = 0.041: PASS at a margin of 3",
// without the name of the cell.
std::string probe_sentence(const ProbeComparison& comparison);

// The p-values of those that gate.
std::vector<double> gating_p_values(std::span<const ProbeComparison> comparisons);

// Throws InputError as decide_probes() does.
void check_probe_margin(ProbeKind kind, double margin);

}  // namespace cupel
