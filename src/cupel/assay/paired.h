// Two cells compared item by item (assay.md, "Estimand" and "Two standard errors").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupel/assay/interval.h"
#include "cupel/assay/outcomes.h"

namespace cupel {

// Losses, standard errors and intervals are in percentage points; a positive loss means that the
// candidate is worse.
struct Comparison {
  std::string reference;
  std::string candidate;
  int items = 0;
  // Repeats that count: identical passes of a deterministic cell count once.
  int repeats_reference = 0;
  int repeats_candidate = 0;
  // Both arms were declared deterministic and their repeats, if any, agree.
  bool deterministic = false;
  // Items whose repeats disagree although the arms were declared deterministic.
  int broken_determinism = 0;

  double loss = 0;
  double se_new = 0;             // luck of the items and run noise
  std::optional<double> se_set;  // run noise on this item set; needs two repeats in both arms
  double sum_squares = 0;        // sum of D[i]^2
  int lost = 0;                  // items with D[i] > 0: worse in the candidate
  int gained = 0;                // items with D[i] < 0

  // Exact McNemar test, for single runs: two-sided, and one-sided against a loss.
  std::optional<double> mcnemar_two_sided;
  std::optional<double> mcnemar_one_sided;

  // u = 4 * sum p(1-p), unbiased; from at least two repeats, 0 for a deterministic cell.
  std::optional<double> unstable_reference;
  std::optional<double> unstable_candidate;
  // H = sum of squared true changes: sum_squares less what run noise adds, at least 0. Needs run
  // noise to be known in both arms.
  std::optional<double> changed_squares;

  // The standard error that PASS is judged by: se_set where it is identifiable.
  double se_pass() const { return se_set.value_or(se_new); }
  double lower_bound(double z = kDecisionZ) const { return loss - z * se_new; }
  double upper_bound(double z = kDecisionZ) const { return loss + z * se_pass(); }
  // The mean of the arms that have one.
  std::optional<double> unstable() const;
};

// `deterministic` declares that a repeat of either arm would give the same answers.
// Throws InputError if an arm is empty or the arms hold different items, prompts or golds; it says
// which items.
Comparison compare(const CellOutcomes& reference, const CellOutcomes& candidate,
                   bool deterministic = false);

// Exact McNemar p-values from the discordant counts.
double mcnemar_two_sided(std::int64_t lost, std::int64_t gained);
double mcnemar_one_sided(std::int64_t lost, std::int64_t gained);

// Loss under backend (or any second factor) A less the loss under B, paired by item.
struct Interaction {
  std::string name;
  double estimate = 0;        // points
  double standard_error = 0;  // new items
  Interval interval95;
  double p_one_sided = 1;  // against 0, in the direction of a larger loss under A
};

// The small-sample term of se_new (2 squared differences) is counted once for each of the two
// comparisons. Throws InputError as compare() does.
Interaction interaction(const CellOutcomes& reference_a, const CellOutcomes& candidate_a,
                        const CellOutcomes& reference_b, const CellOutcomes& candidate_b);

}  // namespace cupel
