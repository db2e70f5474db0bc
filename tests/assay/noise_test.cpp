#include "cupel/assay/noise.h"

#include <cmath>
#include <random>

#include "assay/cells.h"
#include "assay/golden_values.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using test::Runs;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every item `stable` times right, then items with these runs.
CellOutcomes cell(int stable, const Runs& right, const std::vector<Runs>& others) {
  std::vector<Runs> items(static_cast<std::size_t>(stable), right);
  items.insert(items.end(), others.begin(), others.end());
  return test::cell("c", items);
}

std::vector<Record> answers(const std::vector<std::vector<std::string>>& items) {
  std::vector<Record> all;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t r = 0; r < items[i].size(); ++r) {
      Record record;
      record.item = static_cast<int>(i);
      record.repeat = static_cast<int>(r);
      record.output = items[i][r];
      if (!items[i][r].empty()) record.extracted = items[i][r].back() - '0';
      all.push_back(record);
    }
  }
  return all;
}

TEST(RunNoise, ByHand) {
  // Three items with s^2 = 1/2; the runs' scores are 8 and 9 of 10.
  const RunNoise noise = run_noise(cell(7, {1, 1}, {{1, 0}, {0, 1}, {0, 1}}));
  EXPECT_EQ(noise.disagreeing, 3);
  EXPECT_DOUBLE_EQ(noise.unstable, 6);
  EXPECT_NEAR(noise.deviation_by_items, 100.0 / 10 * std::sqrt(1.5), 1e-12);
  EXPECT_NEAR(noise.deviation_by_runs, 100.0 / 10 * std::sqrt(0.5), 1e-12);
  ASSERT_TRUE(noise.p_same);
  // Two of three changes went one way: nothing out of the ordinary.
  EXPECT_GT(*noise.p_same, 0.3);
  EXPECT_THAT(notes(noise), IsEmpty());
}

TEST(RunNoise, NoDisagreementIsABoundAndNotZero) {
  const RunNoise noise = run_noise(cell(1319, {1, 1}, {}));
  EXPECT_EQ(noise.unstable, 0);
  EXPECT_EQ(noise.unstable95.low, 0);
  // Items at p = 1/2 agree by chance with 1/2: 2 * 3.0 of them are missed with 5 %.
  EXPECT_NEAR(noise.unstable95.high, -2 * std::log(0.05), 1e-9);
  EXPECT_FALSE(noise.p_same);
  EXPECT_THAT(notes(noise), Contains(HasSubstr("at most u = 6.0")));
}

TEST(RunNoise, AnEffectSharedByAWholeRunIsNoticed) {
  // Thirty items, all wrong in the same run.
  const RunNoise noise =
      run_noise(cell(100, {1, 1, 1, 1}, std::vector<Runs>(30, Runs{1, 1, 0, 1})));
  EXPECT_GT(noise.deviation_by_runs, 2 * noise.deviation_by_items);
  EXPECT_THAT(notes(noise), Contains(HasSubstr("a shared run or launch effect")));
}

// Two runs of one score are no news: of 90 coins in each that happens in 6 %.
TEST(RunNoise, EqualScoresAreNoEffect) {
  std::vector<Runs> items(46, Runs{1, 0});
  items.resize(92, Runs{0, 1});
  const RunNoise noise = run_noise(cell(1000, {1, 1}, items));
  EXPECT_EQ(noise.deviation_by_runs, 0);
  EXPECT_THAT(notes(noise), IsEmpty());
  // Sixteen of them are.
  std::vector<Runs> fixed;
  for (std::size_t i = 0; i < 96; ++i) {
    Runs runs(16, 0);
    for (std::size_t r = 0; r < 8; ++r) runs[(i + 2 * r) % 16] = 1;
    fixed.push_back(runs);
  }
  EXPECT_THAT(notes(run_noise(cell(1000, Runs(16, 1), fixed))),
              Contains(HasSubstr("not independent")));
}

TEST(RunNoise, AgreesWithScipy) {
  for (const golden::Unstable& g : golden::kUnstable) {
    SCOPED_TRACE(g.disagreeing);
    const RunNoise noise =
        run_noise(cell(1319 - g.disagreeing, {1, 1},
                       std::vector<Runs>(static_cast<std::size_t>(g.disagreeing), Runs{0, 1})));
    EXPECT_NEAR(noise.unstable95.low, g.low, 1e-6);
    EXPECT_NEAR(noise.unstable95.high, g.high, 1e-6);
    EXPECT_NEAR(noise.deviation_by_runs95.low, g.deviation_low, 1e-6);
    EXPECT_NEAR(noise.deviation_by_runs95.high, g.deviation_high, 1e-6);
  }
  for (const golden::NoneOf& g : golden::kNoneOf) {
    const std::vector<std::vector<std::string>> same(static_cast<std::size_t>(g.pairs), {"a", "a"});
    EXPECT_NEAR(text_agreement(answers(same), "r").rate95.high, g.upper, 1e-9);
  }
}

TEST(RunNoise, IntervalsCoverU) {
  std::mt19937_64 random(5);
  for (const int repeats : {2, 3, 4, 8}) {
    for (const double p : {0.5, 0.05}) {
      SCOPED_TRACE(::testing::Message() << repeats << " repeats, p " << p);
      const int unstable = 60;
      const double u = unstable * 4 * p * (1 - p);
      int covered = 0;
      double mean = 0;
      constexpr int kStudies = 400;
      for (int s = 0; s < kStudies; ++s) {
        std::vector<Runs> items(unstable, Runs(static_cast<std::size_t>(repeats)));
        for (Runs& runs : items) {
          for (auto& r : runs) r = std::uniform_real_distribution<>()(random) < p ? 1 : 0;
        }
        const RunNoise noise =
            run_noise(cell(300, Runs(static_cast<std::size_t>(repeats), 1), items));
        covered += noise.unstable95.low <= u && u <= noise.unstable95.high ? 1 : 0;
        mean += noise.unstable / kStudies;
      }
      EXPECT_GE(covered, kStudies * 93 / 100);
      EXPECT_NEAR(mean, u, 0.12 * u);
    }
  }
}

TEST(RunNoise, NeedsTwoRepeats) {
  EXPECT_THROW(run_noise(cell(3, {1}, {})), InputError);
  EXPECT_THROW(run_noise(test::cell("c", {})), InputError);
}

TEST(Agreement, CountsPairsOfTextAndOfAnswer) {
  const auto records = answers({{"a 1", "b 1", "b 2"}, {"x 3", "x 3", "x 3"}});
  const Agreement text = text_agreement(records, "r");
  EXPECT_EQ(text.pairs, 6);
  EXPECT_EQ(text.differing, 3);
  EXPECT_EQ(text.independent_pairs, 2);
  EXPECT_DOUBLE_EQ(text.total_agreement(), 0.5);
  EXPECT_EQ(answer_agreement(records, "r").differing, 2);
  EXPECT_THROW(text_agreement(answers({{"a"}}), "r"), InputError);
}

TEST(Agreement, NoDifferenceIsABound) {
  const std::vector<std::vector<std::string>> same(100, {"a", "a", "a", "a"});
  const Agreement a = text_agreement(answers(same), "r");
  EXPECT_EQ(a.rate, 0);
  EXPECT_EQ(a.independent_pairs, 200);
  EXPECT_NEAR(a.rate95.high, 1 - std::pow(0.05, 1.0 / 200), 1e-12);
  EXPECT_NEAR(a.rate95.high, 3.0 / 200, 1e-3);  // the rule of three
}

TEST(IdenticalPasses, NeedRepeatsAndTheSameTextInAll) {
  EXPECT_TRUE(identical_passes(answers({{"a", "a"}, {"b", "b"}})));
  EXPECT_FALSE(identical_passes(answers({{"a", "a"}, {"b", "c"}})));
  EXPECT_FALSE(identical_passes(answers({{"a"}, {"b"}})));
}

}  // namespace
}  // namespace cupel
