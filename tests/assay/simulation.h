// Simulated studies with a known truth, for the calibration of the decision rule. Only items that
// are not the same in every study are drawn.
#pragma once

#include <cstdint>
#include <random>

#include "cupel/assay/sequential.h"

namespace cupel::test {

constexpr int kItems = 1319;

struct Truth {
  double unstable = 0;  // u: items at p = 1/2, or at p uniform in (0, 1), in both arms alike
  bool uniform = false;
  // Items changed for good, each way with p = 1/2 (no loss on new items), or, `balanced`, half of
  // them each way (no loss on this item set either).
  int flipped = 0;
  bool balanced = false;
  int dead = 0;         // items that only the reference answers; with `spread`, four times as
  bool spread = false;  // many that the candidate answers with p = 3/4: the same loss

  double loss() const { return 100.0 * dead / kItems; }
  // H of the lost and flipped items, and u as the mean over the arms.
  double changed_squares() const { return flipped + (spread ? dead / 4.0 : dead); }
  double mean_unstable() const;
};

// One study: fresh outcomes for both arms with up to `most` repeats.
class SimulatedStudy {
 public:
  SimulatedStudy(const Truth& truth, std::uint64_t seed);

  // Draws a new study with these repeats in each arm.
  void draw(int repeats_reference, int repeats_candidate);
  // Adds repeats to the present one.
  void extend(int repeats_reference, int repeats_candidate);

  const ArmAtLook& reference() const { return reference_; }
  const ArmAtLook& candidate() const { return candidate_; }
  // The loss given this study's flipped items, in points.
  double loss_of_item_set() const;

 private:
  void draw_item(ItemOutcomes& item, double p, int repeats);
  void resize(ArmAtLook& arm, int repeats);

  Truth truth_;
  std::mt19937_64 random_;
  std::vector<double> p_;   // of the unstable items
  std::vector<bool> lost_;  // of the flipped items
  ArmAtLook reference_;
  ArmAtLook candidate_;
};

struct Rates {
  double pass = 0;
  double regression = 0;
  double set_coverage = 0;  // of the two-sided 95 % interval of the item set; nan at one repeat
  double set_width = 0;     // mean, relative to the interval of known variance
};

Rates simulate(const Truth& truth, int repeats_reference, int repeats_candidate, double margin,
               int studies, std::uint64_t seed);

struct SequentialRates {
  double pass = 0;
  double regression = 0;
  double repeats = 0;   // mean at the end
  double coverage = 0;  // studies whose intervals covered the item set's loss at every look
};

// `others`: further comparisons in the Holm family, without a loss, drawn as normal.
SequentialRates simulate_looks(const Truth& truth, const LookRule& rule, int others, int studies,
                               std::uint64_t seed);

// Share of studies on newly drawn items whose new-items 95 % interval covers the true loss. Items
// are unstable, lost, gained or stable with fixed probabilities; u is their expected number.
double new_items_coverage(double unstable, double changed, int repeats, int studies,
                          std::uint64_t seed);

}  // namespace cupel::test
