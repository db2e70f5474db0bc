#include "cupel/assay/floor.h"

#include "assay/golden_values.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

FloorCase at(double score, int unstable) {
  FloorCase c{1319, score, 0.91, 1, std::nullopt};
  if (unstable >= 0) c.unstable = unstable;
  return c;
}

TEST(Floor, AgreesWithScipy) {
  for (const golden::Floor& g : golden::kFloors) {
    SCOPED_TRACE(::testing::Message() << g.score << ' ' << g.unstable);
    const FloorCase c = at(g.score, g.unstable);
    EXPECT_NEAR(floor_fails(c) / g.fails, 1, 1e-9);
    EXPECT_NEAR(floor_passes(c), 1 - g.fails, 1e-12);
  }
}

// The table of the specification, to its own rounding.
TEST(Floor, ReproducesTheTable) {
  EXPECT_NEAR(floor_fails(at(0.9249, 60)), 7e-15, 0.5e-15);
  EXPECT_NEAR(floor_fails(at(0.9249, 160)), 1e-6, 0.5e-6);
  EXPECT_NEAR(floor_fails(at(0.9249, 320)), 2e-4, 0.5e-4);
  EXPECT_NEAR(floor_fails(at(0.9249, -1)), 5e-4, 0.5e-4);
  EXPECT_NEAR(100 * floor_passes(at(0.90, 60)), 0.04, 0.005);
  EXPECT_NEAR(100 * floor_passes(at(0.90, 160)), 3.2, 0.05);
  EXPECT_NEAR(100 * floor_passes(at(0.90, 320)), 12.7, 0.05);
  EXPECT_NEAR(100 * floor_passes(at(0.90, -1)), 20, 0.5);
  EXPECT_NEAR(100 * floor_passes(at(0.9149, 60)), 99.8, 0.05);
  EXPECT_NEAR(100 * floor_passes(at(0.9149, 160)), 97.7, 0.05);
  EXPECT_NEAR(100 * floor_passes(at(0.9149, 320)), 94.5, 0.05);
  EXPECT_NEAR(100 * floor_passes(at(0.9149, -1)), 93.4, 0.05);
}

TEST(Floor, TheFloorItselfPasses) {
  EXPECT_EQ(floor_passes({100, 0.91, 0.91, 0, 0}), 1);
  EXPECT_EQ(floor_passes({100, 0.90, 0.91, 0, 0}), 0);
  EXPECT_EQ(floor_fails({100, 0.90, 0.91, 5, 0}), 1);
}

TEST(Floor, RefusesWhatCannotBe) {
  EXPECT_THROW(floor_fails({100, 0.99, 0.9, 0, 10}), InputError);
  EXPECT_THROW(floor_fails({100, 1.5, 0.9, 0, {}}), InputError);
  EXPECT_THROW(floor_fails({100, 0.5, 0.9, -1, {}}), InputError);
  EXPECT_THROW(floor_fails({0, 0.5, 0.9, 0, {}}), InputError);
  EXPECT_THROW(floor_fails({100, 0.5, 0.9, 0, -2}), InputError);
}

TEST(Floor, ProposesTheHighestThatKeepsTheFalseAlarmRate) {
  for (const int unstable : {-1, 0, 60, 320}) {
    SCOPED_TRACE(unstable);
    FloorCase c = at(0.9249, unstable);
    const int needed = propose_floor(c, 0.01);
    c.floor = needed / 1319.0;
    EXPECT_LE(floor_fails(c), 0.01);
    c.floor = (needed + 1) / 1319.0;
    EXPECT_GT(floor_fails(c), 0.01);
  }
  EXPECT_EQ(propose_floor(at(0.9249, 0), 0.01), 1220);
  EXPECT_EQ(propose_floor(at(0.9249, 60), 1), 1319);
  EXPECT_THROW(propose_floor(at(0.9249, 60), -0.1), InputError);
}

}  // namespace
}  // namespace cupel
