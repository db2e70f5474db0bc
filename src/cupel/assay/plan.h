// Power and the size of a study (assay.md, "Planning"). Losses, margins and standard errors are in
// percentage points; alpha is one-sided, and for several cells or looks the caller divides it:
// kAlpha / (cells * looks).
#pragma once

#include <optional>

#include "cupel/assay/interval.h"

namespace cupel {

inline constexpr double kPlannedPower = 0.8;

// A study as planned: `unstable` is u, `changed_squares` is H.
struct Study {
  int items = 0;
  double unstable = 0;
  double changed_squares = 0;
  int repeats_reference = 1;
  int repeats_candidate = 1;
};

// Standard error of the loss from run noise alone, and with the luck of the items.
double run_error(const Study& study);
double new_items_error(const Study& study);

// P(REGRESSION) at a true loss of at least the margin.
double regression_power(const Study& study, double loss, double alpha = kAlpha);

// Repeats in each arm so that PASS has the wanted power at the true `loss` < margin; at least 1.
int repeats_to_pass(int items, double unstable, double margin, double loss = 0,
                    double alpha = kAlpha, double power = kPlannedPower);

// Repeats in each arm, at most `limit`, so that REGRESSION has the wanted power at `loss`; nullopt
// where the luck of the items (H) forbids it.
std::optional<int> repeats_to_regression(const Study& study, double loss, int limit,
                                         double alpha = kAlpha, double power = kPlannedPower);

// True where no number of repeats lets REGRESSION reach the wanted power at a loss of the margin,
// because of the items that truly changed: sqrt(H + 2) * 100 / n > m / (z_alpha + z_power).
bool needs_more_items(int items, double changed_squares, double margin, double alpha = kAlpha,
                      double power = kPlannedPower);

// Items at which that ends, if H grows in proportion to the items.
int items_needed(int items, double changed_squares, double margin, double alpha = kAlpha,
                 double power = kPlannedPower);

}  // namespace cupel
