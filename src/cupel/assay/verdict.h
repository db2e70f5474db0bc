// PASS, REGRESSION or INCONCLUSIVE (assay.md, "Verdict" and "Several cells").
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/assay/paired.h"
#include "cupel/base/error.h"

namespace cupel {

enum class Verdict { kPass, kRegression, kInconclusive };

std::string_view verdict_name(Verdict verdict);

struct VerdictRule {
  double margin = 0;      // points, > 0, declared before the run
  double z = kDecisionZ;  // quantile of both one-sided bounds
  double alpha = kAlpha;  // family-wise level of REGRESSION
};

// What would decide an INCONCLUSIVE comparison. Both empty: neither would, the loss is too near to
// the zone between 0 and the margin.
struct Remedy {
  std::optional<int> repeats;  // in each arm, in all; never for a deterministic cell
  std::optional<int> items;    // in all, if changes grow in proportion
  std::string text;            // "4 repeats in each arm (now 1)"
};

struct Decision {
  Verdict verdict = Verdict::kInconclusive;
  // The 90 % interval: its ends are the one-sided 95 % bounds that decide. The lower is for new
  // items, the upper for this item set where it has two repeats in both arms.
  Interval interval90;
  Interval interval95_new;
  std::optional<Interval> interval95_set;
  double p_regression = 1;          // one-sided, loss 0, new items
  double p_holm = 1;                // adjusted for the family; gates REGRESSION
  double q_value = 1;               // Benjamini-Hochberg, shown only
  bool loss_inside_margin = false;  // PASS, yet a loss above 0 is shown
  bool loss_beyond_margin = false;  // REGRESSION, and a loss above the margin is shown
  bool held_by_family = false;      // would be REGRESSION as the only comparison
  Remedy remedy;                    // for kInconclusive
};

// One comparison alone: a family of one. Throws InputError unless margin, z and alpha are sensible.
Decision decide(const Comparison& comparison, const VerdictRule& rule);

// A family of comparisons, in the order given: REGRESSION also needs Holm's adjusted p-value to be
// at most alpha; PASS needs no adjustment. `further` are p-values of other
// members of the family.
std::vector<Decision> decide_family(std::span<const Comparison> comparisons,
                                    const VerdictRule& rule, std::span<const double> further = {});

// kRegression if any is, else kInconclusive if any is, else kPass; kInconclusive if there are none.
ExitCode exit_code(std::span<const Decision> decisions);

// What a reader must know beside the verdict, one sentence each.
std::vector<std::string> notes(const Comparison& comparison, const Decision& decision);

}  // namespace cupel
