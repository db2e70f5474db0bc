// The reduced form of planted_long.
#include "assay/planted_study.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(PlantedEndpoint, NoiseIsFoundLossIsCalledAndNothingIsLeftAlone) {
  const test::PlantedCounts counts = test::run_planted_studies(320, 0.5, 10, 1000);
  EXPECT_GE(counts.covered, 8);
  EXPECT_GE(counts.called, 6);
  EXPECT_LE(counts.false_alarms, 2);
}

TEST(PlantedEndpoint, FlipsAtItsRate) {
  const test::Planted planted{.items = 400, .unstable = 200, .rate = 0.2, .dead = 40, .seed = 3};
  EXPECT_NEAR(test::run_planted(planted, 4).accuracy(), 1 - 0.1 - 0.5 * 0.2, 0.02);
}

}  // namespace
}  // namespace cupel
