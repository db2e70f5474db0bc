#include "cupel/assay/interval.h"

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

TEST(Normal, QuantilesOfTheRule) {
  EXPECT_NEAR(normal_quantile(1 - kAlpha), kDecisionZ, 2e-4);
  EXPECT_NEAR(normal_quantile(0.975), kDisplayZ, 1e-12);
  EXPECT_NEAR(normal_cdf(normal_quantile(0.01)), 0.01, 1e-12);
}

}  // namespace
}  // namespace cupel
