#include "cupel/assay/interval.h"

#include <cmath>
#include <vector>

#include "assay/golden_values.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(Interval, AgreesWithStatsmodels) {
  for (const golden::Proportion& g : golden::kProportions) {
    SCOPED_TRACE(::testing::Message() << g.successes << '/' << g.trials);
    const Interval w = wilson(g.successes, g.trials, 0.95);
    EXPECT_NEAR(w.low, g.wilson_low, 1e-9);
    EXPECT_NEAR(w.high, g.wilson_high, 1e-9);
    const Interval e = clopper_pearson(g.successes, g.trials, 0.95);
    EXPECT_NEAR(e.low, g.exact_low, 1e-9);
    EXPECT_NEAR(e.high, g.exact_high, 1e-9);
  }
}

// scipy.stats.t.interval(0.95, 4, mean, sem) of these values.
TEST(Interval, OfAMeanByStudentsT) {
  const std::vector<double> values = {9.1, 10.4, 9.7, 10.9, 10.2};
  const Interval i = mean_interval(values, 0.95);
  EXPECT_NEAR((i.low + i.high) / 2, 10.06, 1e-12);
  EXPECT_NEAR(i.high - 10.06, 2.7764451051977987 * std::sqrt(0.473 / 5), 1e-9);
  EXPECT_NEAR(students_t_quantile(0.975, 1), 12.706204736, 1e-8);
}

TEST(Normal, QuantilesOfTheRule) {
  EXPECT_NEAR(normal_quantile(1 - kAlpha), kDecisionZ, 2e-4);
  EXPECT_NEAR(normal_quantile(0.975), kDisplayZ, 1e-12);
  EXPECT_NEAR(normal_cdf(normal_quantile(0.01)), 0.01, 1e-12);
}

}  // namespace
}  // namespace cupel
