#include "cupel/assay/paired.h"

#include <cmath>

#include "assay/cells.h"
#include "assay/golden_values.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using test::cell;
using test::Runs;
using test::single_runs;
using ::testing::HasSubstr;

TEST(McNemar, AgreesWithStatsmodels) {
  for (const golden::Discordant& g : golden::kDiscordant) {
    SCOPED_TRACE(::testing::Message() << g.lost << ' ' << g.gained);
    EXPECT_NEAR(mcnemar_two_sided(g.lost, g.gained) / g.two_sided, 1, 1e-6);
    EXPECT_NEAR(mcnemar_one_sided(g.lost, g.gained) / g.one_sided, 1, 1e-6);
  }
}

TEST(Compare, SingleRunsByHand) {
  const auto [ref, cand] = single_runs(1000, 30, 10);
  const Comparison c = compare(ref, cand);
  EXPECT_DOUBLE_EQ(c.loss, 2);
  EXPECT_EQ(c.lost, 30);
  EXPECT_EQ(c.gained, 10);
  // (100/1000) sqrt(40 + 2 - 20^2/1000)
  EXPECT_NEAR(c.se_new, 0.1 * std::sqrt(41.6), 1e-12);
  EXPECT_FALSE(c.se_set);
  EXPECT_DOUBLE_EQ(c.se_pass(), c.se_new);
  EXPECT_FALSE(c.unstable());
  EXPECT_FALSE(c.changed_squares);
  EXPECT_NEAR(c.mcnemar_one_sided.value_or(-1), mcnemar_one_sided(30, 10), 0);
}

TEST(Compare, UnequalRepeatsByHand) {
  const auto ref = cell("ref", {{1, 1}, {1, 0}, {1, 1}, {0, 0}});
  const auto cand = cell("cand", {{1, 1, 1}, {0, 0, 1}, {0, 0, 0}, {0, 0, 0}});
  const Comparison c = compare(ref, cand);
  // D = 0, 1/2 - 1/3, 1, 0
  EXPECT_NEAR(c.loss, 100 * (7.0 / 6) / 4, 1e-12);
  EXPECT_NEAR(c.se_new, 25 * std::sqrt(37.0 / 36 + 2 - (49.0 / 36) / 4), 1e-12);
  // s^2: reference 1/2 for item 1; candidate 1/3 for item 1.
  EXPECT_NEAR(c.se_set.value_or(-1), 25 * std::sqrt(0.5 / 2 + (1.0 / 3) / 3 + 0.5 / 2 + 0.5 / 3),
              1e-12);
  EXPECT_NEAR(c.unstable_reference.value_or(-1), 2, 1e-12);
  EXPECT_NEAR(c.unstable_candidate.value_or(-1), 4.0 / 3, 1e-12);
  EXPECT_NEAR(c.changed_squares.value_or(-1), 37.0 / 36 - 0.25 - 1.0 / 9, 1e-12);
  EXPECT_EQ(c.lost, 2);
  EXPECT_EQ(c.gained, 0);
  EXPECT_FALSE(c.mcnemar_two_sided);
}

TEST(Compare, OneRepeatInOneArmGivesNoItemSetError) {
  const auto ref = cell("ref", {{1}, {0}});
  const auto cand = cell("cand", {{1, 0}, {0, 0}});
  const Comparison c = compare(ref, cand);
  EXPECT_FALSE(c.se_set);
  EXPECT_FALSE(c.unstable_reference);
  EXPECT_NEAR(c.unstable().value_or(-1), 2, 1e-12);
  EXPECT_FALSE(c.changed_squares);
}

TEST(Compare, IdenticalPassesOfADeterministicCellCountOnce) {
  const auto ref = cell("ref", {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}});
  const auto cand = cell("cand", {{1}, {0}, {0}});
  const Comparison c = compare(ref, cand, true);
  EXPECT_TRUE(c.deterministic);
  EXPECT_EQ(c.repeats_reference, 1);
  EXPECT_FALSE(c.se_set);
  EXPECT_EQ(c.unstable(), 0.0);
  EXPECT_EQ(c.changed_squares, 1.0);
  EXPECT_TRUE(c.mcnemar_two_sided);
}

TEST(Compare, ABrokenDeclarationIsSeen) {
  const auto ref = cell("ref", {{1, 1}, {1, 0}});
  const auto cand = cell("cand", {{1, 0}, {0, 0}});
  const Comparison c = compare(ref, cand, true);
  EXPECT_FALSE(c.deterministic);
  EXPECT_EQ(c.broken_determinism, 2);
  EXPECT_TRUE(c.se_set);
}

std::string message_of(const CellOutcomes& a, const CellOutcomes& b) {
  try {
    compare(a, b);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Compare, OtherItemsAreNamed) {
  const auto ref = cell("ref", {{1}, {0}, {1}});
  auto cand = ref;
  cand.name = "cand";
  cand.items[2].item = 7;
  EXPECT_EQ(message_of(ref, cand),
            "cand against ref: expected the same items in both cells, found item 2 only in ref; "
            "item 7 only in cand");
  cand.items.pop_back();
  EXPECT_THAT(message_of(ref, cand), HasSubstr("found item 2 only in ref"));
  cand = ref;
  cand.items[1].prompt_hash = "x";
  EXPECT_THAT(message_of(ref, cand), HasSubstr("found others for item 1"));
  cand = ref;
  cand.items[0].gold = 5;
  EXPECT_THAT(message_of(ref, cand), HasSubstr("found others for item 0"));
  cand.items.clear();
  EXPECT_THAT(message_of(ref, cand), HasSubstr("at least one answer"));
}

CellOutcomes any_cell(const std::string& name, int items, int repeats) {
  std::vector<Runs> runs;
  runs.reserve(static_cast<std::size_t>(items));
  for (int i = 0; i < items; ++i) {
    runs.push_back(*rc::gen::container<Runs>(static_cast<std::size_t>(repeats),
                                             rc::gen::inRange<std::uint8_t>(0, 2)));
  }
  return cell(name, runs);
}

RC_GTEST_PROP(Compare, SwappingTheArmsNegatesTheLoss, ()) {
  const int items = *rc::gen::inRange(1, 30);
  const auto a = any_cell("a", items, *rc::gen::inRange(1, 5));
  const auto b = any_cell("b", items, *rc::gen::inRange(1, 5));
  const Comparison ab = compare(a, b);
  const Comparison ba = compare(b, a);
  RC_ASSERT(ab.loss == -ba.loss);
  RC_ASSERT(ab.lost == ba.gained);
  RC_ASSERT(ab.se_new == ba.se_new);
  RC_ASSERT(ab.se_new > 0);
  RC_ASSERT(ab.se_set.has_value() == ba.se_set.has_value());
  if (ab.se_set) {
    // The sum of two terms may round differently the other way round by an ulp at most.
    const double there = ab.se_pass();
    RC_ASSERT(std::abs(there - ba.se_pass()) <= 1e-12 * there);
    RC_ASSERT(there > 0);
  }
  RC_ASSERT(std::abs(ab.loss - 100 * (a.accuracy() - b.accuracy())) < 1e-9);
}

TEST(Interaction, ByHand) {
  const auto ra = cell("ra", {{1}, {1}, {1}, {0}});
  const auto ca = cell("ca", {{0}, {0}, {1}, {0}});
  const auto rb = cell("rb", {{1}, {1}, {0}, {0}});
  const auto cb = cell("cb", {{1}, {0}, {1}, {0}});
  // D under A: 1 1 0 0; under B: 0 1 -1 0; the difference: 1 0 1 0.
  const Interaction i = interaction(ra, ca, rb, cb);
  EXPECT_DOUBLE_EQ(i.estimate, 50);
  EXPECT_NEAR(i.standard_error, 25 * std::sqrt(2 + 4 - 1.0), 1e-12);
  EXPECT_NEAR(i.p_one_sided, normal_cdf(-50 / i.standard_error), 1e-15);
  EXPECT_DOUBLE_EQ(interaction(rb, cb, ra, ca).estimate, -50);
}

}  // namespace
}  // namespace cupel
