// Quantiles, intervals for a proportion and for a mean, and the constants of the decision rule.
#pragma once

#include <cstdint>
#include <span>

namespace cupel {

// One-sided level of every verdict and its normal quantile, as assay.md fixes them.
inline constexpr double kAlpha = 0.05;
inline constexpr double kDecisionZ = 1.645;
// Quantile of the 95 % intervals, which are for display only.
inline constexpr double kDisplayZ = 1.959963984540054;

struct Interval {
  double low = 0;
  double high = 0;
};

double normal_cdf(double z);
// p in (0, 1).
double normal_quantile(double p);
// Of Student's t; p in (0, 1), degrees above 0.
double students_t_quantile(double p, double degrees);

// Two-sided intervals for successes / trials at `level` (0.95), both ends in [0, 1]. trials >= 1,
// 0 <= successes <= trials, level in (0, 1).
Interval wilson(std::int64_t successes, std::int64_t trials, double level);
Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double level);

// Two-sided interval for the mean that independent values vary around, by Student's t with n - 1
// degrees of freedom. At least two values, level in (0, 1).
Interval mean_interval(std::span<const double> values, double level);

}  // namespace cupel
