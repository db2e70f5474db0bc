#include "cupel/assay/counts.h"

#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

const RunCounts kPreview{"preview triton", 1319, {1220}};
const RunCounts k0731{"0731 triton", 1319, {1188, 1175}};

// assay.md, "The seed case from counts alone".
TEST(Counts, TheSeedCase) {
  const CountComparison c = compare_counts(kPreview, k0731, 1);
  EXPECT_NEAR(c.loss, 2.92, 0.005);
  EXPECT_NEAR(c.standard_error, 0.94, 0.005);
  EXPECT_NEAR(c.interval95.low, 1.08, 0.005);
  EXPECT_NEAR(c.interval95.high, 4.76, 0.005);
  EXPECT_NEAR(c.p_zero, 0.0009, 0.00005);
  EXPECT_NEAR(c.p_margin, 0.02, 0.0005);
  EXPECT_EQ(c.spread_degrees, 1);
  EXPECT_NEAR(c.p_spread.value_or(-1), 0.09, 0.005);
  EXPECT_NEAR(c.unstable.value_or(-1), 338, 0.5);
  EXPECT_NEAR(c.unstable95.low, 67, 0.5);
  EXPECT_EQ(c.unstable95.high, 1319);
}

TEST(Counts, TheSeedInteraction) {
  const CountInteraction i = interaction_counts(kPreview, k0731, {"preview unified", 1319, {1224}},
                                                {"0731 unified", 1319, {1217}});
  EXPECT_NEAR(i.estimate, 2.39, 0.005);
  EXPECT_NEAR(i.standard_error, 1.39, 0.005);
  EXPECT_NEAR(i.p_one_sided, 0.043, 0.0005);
}

TEST(Counts, NoSpreadWithoutTwoDifferentRuns) {
  EXPECT_FALSE(compare_counts(kPreview, {"c", 1319, {1188}}, 1).p_spread);
  EXPECT_FALSE(compare_counts(kPreview, {"c", 1319, {1188, 1188}}, 1).unstable);
}

TEST(Counts, ArmsWithoutVariance) {
  const RunCounts all{"all", 10, {10}};
  const RunCounts none{"none", 10, {0}};
  EXPECT_EQ(compare_counts(all, none, 1).p_margin, 0);
  EXPECT_EQ(compare_counts(all, all, 1).p_zero, 1);
}

TEST(Counts, RefusesImpossibleCounts) {
  EXPECT_THROW(compare_counts(kPreview, {"c", 1319, {1320}}, 1), InputError);
  EXPECT_THROW(compare_counts(kPreview, {"c", 1319, {-1}}, 1), InputError);
  EXPECT_THROW(compare_counts(kPreview, {"c", 1319, {}}, 1), InputError);
  EXPECT_THROW(compare_counts(kPreview, {"c", 1318, {1188}}, 1), InputError);
}

}  // namespace
}  // namespace cupel
