// Looking at a comparison more than once as its repeats come in (assay.md, "Looking more than
// once"). The looks are fixed beforehand and share the 5 %: each of K looks is judged at alpha / K,
// for four looks z = 2.24. By the union bound that holds whatever the correlation between looks,
// so also where the first look has no run noise to go by, for unequal arms, and for Holm over
// several cells (which needs p-values at each look). Were looks after 1, 2, 4 and 8 repeats known
// to be correlated as pure run noise makes them (corr(j, k) = sqrt(j / k)), z = 2.13 would do.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/assay/paired.h"
#include "cupel/assay/verdict.h"

namespace cupel {

// Repeats in each arm at each look; positive, ascending.
struct LookPlan {
  std::vector<int> repeats = {1, 2, 4, 8};
  double alpha = kAlpha;  // one-sided, for all looks together
};

// Throws InputError unless the plan has looks, in ascending order, and a sensible alpha.
void check(const LookPlan& plan);

enum class SequentialBound {
  kGroupSequential,  // the verdict's own bounds at alpha / looks
  // E-values below: any number of looks, at any time, but both verdicts are for this item set
  // alone.
  kAnytime,
};

// A look that was taken, and what it was charged. The repeats are those that were asked; 1 and 1
// for a deterministic comparison, however often it was asked.
struct TakenLook {
  int repeats_reference = 0;
  int repeats_candidate = 0;
  double alpha = 0;

  bool operator==(const TakenLook&) const = default;
};

// The level of a look at these repeats: what the looks taken so far have left of plan.alpha, shared
// evenly with the looks of the plan that are still to come (those with more repeats than the
// smaller arm has now). A look that was taken already has its old level. 0 where nothing is left:
// records that were extended beyond their plan cannot be judged by this bound.
double look_level(std::span<const TakenLook> taken, int repeats_reference, int repeats_candidate,
                  const LookPlan& plan);

// Evidence against "loss <= 0" (for REGRESSION) and against "loss >= margin" (for PASS): for each
// pass the product over items of 1 + lambda * D, D = X[ref] - X[cand] (or margin - D), the same
// lambda for all items, multiplied over passes and averaged over a fixed grid of lambdas. Given
// the items' probabilities its expectation is at most 1 where the statement holds, since
// prod(1 + lambda d[i]) <= (1 + lambda mean d)^n <= 1; so it exceeds 1 / alpha at any time with
// probability at most alpha (Ville). The values are the largest after any pass so far.
struct AnytimeEvidence {
  int passes = 0;
  double against_no_loss = 1;
  double against_margin = 1;
};

// Pass r of one arm stands beside pass r of the other; an arm with one pass (a deterministic one)
// stands beside all. `margin` in points. Throws InputError as compare() does.
AnytimeEvidence anytime_evidence(const CellOutcomes& reference, const CellOutcomes& candidate,
                                 double margin);

// An arm at a look. Identical passes (noise.h) of an arm count once.
struct ArmAtLook {
  CellOutcomes outcomes;
  bool identical_passes = false;
  bool deterministic = false;  // declared so
};

struct LookRule {
  double margin = 0;  // points
  LookPlan plan = {};
  SequentialBound bound = SequentialBound::kGroupSequential;
  bool deterministic = false;  // all arms are declared so
  // p-values of further members of the Holm family, at plan.alpha: probes that gate.
  std::vector<double> family = {};
};

struct LookDecision {
  Comparison comparison;
  Decision decision;  // for kAnytime p_regression is 1 / evidence
  TakenLook look;     // this look and its one-sided alpha, for the looks after it
  // Two-sided; over all looks together it holds with 1 - plan.alpha, as each has
  // 1 - plan.alpha / looks. From se_set where there is one, else for new items.
  Interval repeated95;
  std::optional<AnytimeEvidence> evidence;
  // More repeats are of no use: decided, looks used up, or repeats cannot decide.
  bool final = false;
  std::string reason;  // why the looks end or go on; one sentence
};

// The candidates of one reference at one look, in the order given; `taken[i]` are the earlier looks
// of candidate i (empty: none). REGRESSION is gated by Holm over all of them. Throws InputError as
// compare() does, and if `taken` is neither empty nor one for each candidate.
std::vector<LookDecision> decide_at_look(const ArmAtLook& reference,
                                         std::span<const ArmAtLook> candidates,
                                         const LookRule& rule,
                                         std::span<const std::vector<TakenLook>> taken = {});

// Gives an arm (0 = the reference, i = candidate i - 1) with this many repeats in all.
using ExtendArm = std::function<ArmAtLook(std::size_t arm, int repeats)>;

struct UntilDecided {
  std::vector<LookDecision> decisions;  // one for each candidate, from its last look
  std::vector<int> looks;               // likewise, how many it had
  int repeats = 0;                      // of the reference
};

// Takes the looks of the plan, extending the reference and every candidate not yet final, until
// all are. A candidate that is final keeps its last comparison in the Holm family. `taken` as for
// decide_at_look(): a study that goes on takes its looks again, at what they were charged.
UntilDecided run_until_decided(const LookRule& rule, std::size_t candidates,
                               const ExtendArm& extend,
                               const std::function<void(const UntilDecided&)>& after_look = {},
                               std::vector<std::vector<TakenLook>> taken = {});

}  // namespace cupel
