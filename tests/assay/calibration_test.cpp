// Simulated studies with a known truth: does the rule keep its promises (assay.md, "Verdict")?
#include <random>

#include "assay/cells.h"
#include <gtest/gtest.h>

#include "cupel/assay/plan.h"
#include "cupel/assay/verdict.h"

namespace cupel {
namespace {

constexpr int kItems = 1319;

struct Setting {
  int unstable;  // items at p = 1/2 in both arms
  int flipped;   // items that change for good, each way with p = 1/2
  int dead;      // items that only the reference answers
  int repeats_reference;
  int repeats_candidate;
};

struct Rates {
  double pass = 0;
  double regression = 0;
  double regression_by_item_set = 0;  // were the lower bound taken from se_set
};

void draw(test::Runs& runs, std::mt19937_64& random) {
  const std::uint64_t bits = random();
  for (std::size_t r = 0; r < runs.size(); ++r) runs[r] = static_cast<std::uint8_t>(bits >> r & 1U);
}

Rates simulate(const Setting& s, int studies, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto blank = [](const char* name, int repeats) {
    return test::cell(
        name, std::vector<test::Runs>(kItems, test::Runs(static_cast<std::size_t>(repeats), 1)));
  };
  CellOutcomes ref = blank("ref", s.repeats_reference);
  CellOutcomes cand = blank("cand", s.repeats_candidate);
  const auto fill = [](test::Runs& runs, bool value) {
    for (auto& r : runs) r = value ? 1 : 0;
  };
  const int flips_from = s.unstable;
  const int dead_from = flips_from + s.flipped;
  for (int i = dead_from; i < dead_from + s.dead; ++i) {
    fill(cand.items[static_cast<std::size_t>(i)].correct, false);
  }
  Rates rates;
  for (int study = 0; study < studies; ++study) {
    for (int i = 0; i < s.unstable; ++i) {
      draw(ref.items[static_cast<std::size_t>(i)].correct, random);
      draw(cand.items[static_cast<std::size_t>(i)].correct, random);
    }
    for (int i = flips_from; i < dead_from; ++i) {
      const bool lost = (random() & 1U) != 0;
      fill(ref.items[static_cast<std::size_t>(i)].correct, lost);
      fill(cand.items[static_cast<std::size_t>(i)].correct, !lost);
    }
    const Comparison c = compare(ref, cand);
    const Decision d = decide(c, {1, kDecisionZ, kAlpha});
    rates.pass += d.verdict == Verdict::kPass ? 1.0 / studies : 0;
    rates.regression += d.verdict == Verdict::kRegression ? 1.0 / studies : 0;
    const bool by_item_set =
        d.verdict != Verdict::kPass && c.se_set && c.loss - kDecisionZ * *c.se_set > 0;
    rates.regression_by_item_set += by_item_set ? 1.0 / studies : 0;
  }
  return rates;
}

TEST(Calibration, FalseRegressionsAreRare) {
  constexpr Setting kSettings[] = {
      {60, 0, 0, 1, 1},  {160, 0, 0, 2, 2},  {320, 0, 0, 4, 4},
      {60, 66, 0, 2, 2}, {160, 66, 0, 8, 1}, {320, 66, 0, 1, 1},
  };
  std::uint64_t seed = 1;
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(::testing::Message() << "u " << s.unstable << " flipped " << s.flipped);
    // The true rates are 4.5 to 5.0 %; one standard error of 8,000 studies is 0.24 %.
    EXPECT_LE(simulate(s, 8000, seed++).regression, 0.057);
  }
}

// Items that flip for good, either way alike, are no loss on new items, and run noise alone cannot
// tell: the lower bound must carry the luck of the items.
TEST(Calibration, TheItemSetErrorWouldRaiseFalseAlarms) {
  const Rates rates = simulate({5, 200, 0, 4, 4}, 8000, 11);
  EXPECT_LE(rates.regression, 0.057);
  EXPECT_GT(rates.regression_by_item_set, 0.10);
}

TEST(Calibration, FalsePassesAtTheMarginAreRare) {
  // 14 dead items are a loss of 1.06 points.
  constexpr Setting kSettings[] = {{60, 0, 14, 2, 2}, {160, 0, 14, 4, 4}, {320, 0, 14, 8, 8}};
  std::uint64_t seed = 21;
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(::testing::Message() << "u " << s.unstable);
    EXPECT_LE(simulate(s, 2000, seed++).pass, 0.057);
  }
}

TEST(Calibration, PowerIsAsPlanned) {
  for (const int dead : {14, 20}) {
    SCOPED_TRACE(dead);
    const Study study{kItems, 160, static_cast<double>(dead), 4, 4};
    EXPECT_NEAR(simulate({160, 0, dead, 4, 4}, 2000, 31).regression,
                regression_power(study, 100.0 * dead / kItems), 0.03);
  }
  // 3 repeats are planned for 80 % PASS without a loss.
  EXPECT_GE(simulate({160, 0, 0, 3, 3}, 2000, 32).pass, 0.79);
}

}  // namespace
}  // namespace cupel
