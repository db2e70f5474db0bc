#include "cupel/assay/counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

void check(const RunCounts& arm) {
  if (arm.items < 1 || arm.correct.empty()) {
    throw InputError(arm.name, "items and at least one run",
                     fmt::format("{} items, {} runs", arm.items, arm.correct.size()));
  }
  for (const int correct : arm.correct) {
    if (correct < 0 || correct > arm.items) {
      throw InputError(arm.name, fmt::format("a count from 0 to {}", arm.items),
                       std::to_string(correct));
    }
  }
}

void check_items(const RunCounts& a, const RunCounts& b) {
  check(a);
  check(b);
  if (a.items != b.items) {
    throw InputError(fmt::format("{} against {}", b.name, a.name), "the same number of items",
                     fmt::format("{} and {}", a.items, b.items));
  }
}

double mean(const RunCounts& arm) {
  return std::accumulate(arm.correct.begin(), arm.correct.end(), 0.0) /
         static_cast<double>(arm.correct.size());
}

// Of the mean accuracy over the runs, in points^2.
double binomial_variance(const RunCounts& arm) {
  const double p = mean(arm) / arm.items;
  return 1e4 * p * (1 - p) / (arm.items * static_cast<double>(arm.correct.size()));
}

double squared_spread(const RunCounts& arm) {
  const double centre = mean(arm);
  double sum = 0;
  for (const int correct : arm.correct) sum += (correct - centre) * (correct - centre);
  return sum;
}

// One-sided p-value of `estimate` against `value`. Arms that are all correct or all wrong have no
// binomial variance.
double p_above(double estimate, double value, double error) {
  if (error == 0) return estimate > value ? 0 : 1;
  return normal_cdf((value - estimate) / error);
}

}  // namespace

CountComparison compare_counts(const RunCounts& reference, const RunCounts& candidate,
                               double margin) {
  check_items(reference, candidate);
  const double n = reference.items;
  CountComparison c;
  c.loss = 100 * (mean(reference) - mean(candidate)) / n;
  c.standard_error = std::sqrt(binomial_variance(reference) + binomial_variance(candidate));
  c.interval95 = {c.loss - kDisplayZ * c.standard_error, c.loss + kDisplayZ * c.standard_error};
  c.p_zero = p_above(c.loss, 0, c.standard_error);
  c.p_margin = p_above(c.loss, margin, c.standard_error);

  const auto runs_reference = static_cast<double>(reference.correct.size());
  const auto runs_candidate = static_cast<double>(candidate.correct.size());
  c.spread_degrees = static_cast<int>(reference.correct.size() + candidate.correct.size()) - 2;
  const double squares = squared_spread(reference) + squared_spread(candidate);
  if (c.spread_degrees > 0 && squares > 0) {
    const double variance = squares / c.spread_degrees;  // of one run's count
    const double t = (mean(reference) - mean(candidate)) /
                     std::sqrt(variance * (1 / runs_reference + 1 / runs_candidate));
    const boost::math::students_t student(c.spread_degrees);
    c.p_spread = boost::math::cdf(boost::math::complement(student, t));
    // One run's count has the variance u / 4.
    const boost::math::chi_squared chi(c.spread_degrees);
    c.unstable = std::min(4 * variance, n);
    c.unstable95 = {std::min(4 * squares / boost::math::quantile(chi, 0.975), n),
                    std::min(4 * squares / boost::math::quantile(chi, 0.025), n)};
  }
  return c;
}

CountInteraction interaction_counts(const RunCounts& reference_a, const RunCounts& candidate_a,
                                    const RunCounts& reference_b, const RunCounts& candidate_b) {
  check_items(reference_a, candidate_a);
  check_items(reference_b, candidate_b);
  check_items(reference_a, reference_b);
  CountInteraction result;
  const double n = reference_a.items;
  const double net = mean(reference_a) - mean(candidate_a) - mean(reference_b) + mean(candidate_b);
  result.estimate = 100 * net / n;
  result.standard_error =
      std::sqrt(binomial_variance(reference_a) + binomial_variance(candidate_a) +
                binomial_variance(reference_b) + binomial_variance(candidate_b));
  result.p_one_sided = p_above(result.estimate, 0, result.standard_error);
  return result;
}

}  // namespace cupel
