// Normal quantiles, intervals for a proportion, and the constants of the decision rule.
#pragma once

#include <cstdint>

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

// Two-sided intervals for successes / trials at `level` (0.95), both ends in [0, 1]. trials >= 1,
// 0 <= successes <= trials, level in (0, 1).
Interval wilson(std::int64_t successes, std::int64_t trials, double level);
Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double level);

}  // namespace cupel
