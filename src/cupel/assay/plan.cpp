#include "cupel/assay/plan.h"

#include <algorithm>
#include <cmath>

namespace cupel {
namespace {

double alpha_quantile(double alpha) {
  return normal_quantile(1 - alpha);
}

int round_up(double value) {
  // A value that is whole but for rounding is not pushed up by one.
  const double whole = std::ceil(value - 1e-9);
  return static_cast<int>(std::clamp(whole, 1.0, 1e9));
}

}  // namespace

double run_error(const Study& study) {
  const double repeats = 1.0 / study.repeats_reference + 1.0 / study.repeats_candidate;
  return 100.0 / study.items * std::sqrt(study.unstable / 4 * repeats);
}

double new_items_error(const Study& study) {
  const double items = 100.0 / study.items * std::sqrt(study.changed_squares + 2);
  return std::hypot(run_error(study), items);
}

double regression_power(const Study& study, double loss, double alpha) {
  const double excess = loss - alpha_quantile(alpha) * new_items_error(study);
  const double spread = run_error(study);
  // Without run noise the outcome is certain.
  if (spread == 0) return excess > 0 ? 1 : 0;
  return normal_cdf(excess / spread);
}

int repeats_to_pass(int items, double unstable, double margin, double loss, double alpha,
                    double power) {
  const double z = alpha_quantile(alpha) + normal_quantile(power);
  const double spread = items * (margin - loss) / 100 / z;
  return round_up(unstable / 2 / (spread * spread));
}

std::optional<int> repeats_to_regression(const Study& study, double loss, int limit, double alpha,
                                         double power) {
  Study tried = study;
  for (int repeats = 1; repeats <= limit; ++repeats) {
    tried.repeats_reference = tried.repeats_candidate = repeats;
    if (regression_power(tried, loss, alpha) >= power) return repeats;
  }
  return std::nullopt;
}

bool needs_more_items(int items, double changed_squares, double margin, double alpha,
                      double power) {
  const double z = alpha_quantile(alpha) + normal_quantile(power);
  return std::sqrt(changed_squares + 2) * 100 / items > margin / z;
}

int items_needed(int items, double changed_squares, double margin, double alpha, double power) {
  // Smallest n with h n + 2 <= c n^2, where h is H per item.
  const double z = alpha_quantile(alpha) + normal_quantile(power);
  const double h = changed_squares / items;
  const double c = std::pow(margin / (100 * z), 2);
  return round_up((h + std::sqrt(h * h + 8 * c)) / (2 * c));
}

}  // namespace cupel
