#include "cupel/assay/plan.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cupel {
namespace {

constexpr int kItems = 1319;

TEST(Plan, RepeatsToPassAreThoseOfTheSpecification) {
  const auto repeats = [](double unstable, int tests) {
    return repeats_to_pass(kItems, unstable, 1, 0, kAlpha / tests);
  };
  EXPECT_EQ(repeats(60, 1), 2);
  EXPECT_EQ(repeats(160, 1), 3);
  EXPECT_EQ(repeats(320, 1), 6);
  EXPECT_EQ(repeats(60, 7), 2);
  EXPECT_EQ(repeats(160, 7), 5);
  EXPECT_EQ(repeats(320, 7), 10);
  // Seven cells and four looks.
  EXPECT_EQ(repeats(60, 28), 3);
  EXPECT_EQ(repeats(160, 28), 7);
  EXPECT_EQ(repeats(320, 28), 13);
  EXPECT_EQ(repeats(0, 1), 1);
  // Half the distance to the margin: four times the repeats.
  EXPECT_EQ(repeats_to_pass(kItems, 160, 1, 0.5), 12);
}

TEST(Plan, ErrorsByHand) {
  const Study study{1000, 100, 7, 2, 4};
  EXPECT_NEAR(run_error(study), 0.1 * std::sqrt(25 * 0.75), 1e-12);
  EXPECT_NEAR(new_items_error(study), 0.1 * std::sqrt(25 * 0.75 + 9), 1e-12);
}

TEST(Plan, PowerByHand) {
  const Study study{1000, 100, 7, 2, 4};
  const double z = (2 - normal_quantile(0.95) * new_items_error(study)) / run_error(study);
  EXPECT_NEAR(regression_power(study, 2), normal_cdf(z), 1e-12);
  // Without run noise: certain either way.
  const Study quiet{1000, 0, 7, 1, 1};  // bound at 1.645 * 0.3
  EXPECT_EQ(regression_power(quiet, 0.5), 1);
  EXPECT_EQ(regression_power(quiet, 0.49), 0);
}

TEST(Plan, MoreItemsAreNeededFromAbout28ChangedItems) {
  EXPECT_FALSE(needs_more_items(kItems, 26, 1));
  EXPECT_TRUE(needs_more_items(kItems, 28, 1));
  const int needed = items_needed(kItems, 100, 1);
  const double changed = 100.0 / kItems;
  EXPECT_FALSE(needs_more_items(needed, changed * needed, 1));
  EXPECT_TRUE(needs_more_items(needed - 1, changed * (needed - 1), 1));
}

TEST(Plan, RepeatsToRegressionReachThePower) {
  const Study study{kItems, 160, 10, 1, 1};
  const int repeats = repeats_to_regression(study, 1.5, 64).value_or(0);
  ASSERT_GT(repeats, 1);
  Study planned = study;
  planned.repeats_reference = planned.repeats_candidate = repeats;
  EXPECT_GE(regression_power(planned, 1.5), kPlannedPower);
  planned.repeats_reference = planned.repeats_candidate = repeats - 1;
  EXPECT_LT(regression_power(planned, 1.5), kPlannedPower);
  EXPECT_FALSE(repeats_to_regression({kItems, 160, 500, 1, 1}, 1.5, 64));
}

}  // namespace
}  // namespace cupel
