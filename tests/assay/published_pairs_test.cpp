// Four models on GSM8K: which of the 1,319 answers were right, as published with the data set.
#include <array>
#include <cmath>
#include <random>
#include <sstream>

#include "assay/cells.h"
#include <gtest/gtest.h>

#include "cupel/assay/verdict.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"

namespace cupel {
namespace {

constexpr VerdictRule kRule{.margin = 1};
constexpr std::size_t kItems = 1319;

struct Column {
  std::string name;
  std::vector<test::Runs> runs;

  CellOutcomes cell() const { return test::cell(name, runs); }
};

std::vector<Column> read_columns() {
  std::istringstream text(
      read_file(std::filesystem::path(CUPEL_SOURCE_DIR) / "data/gsm8k/paired_correctness.csv"));
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "item,6b_finetuning,6b_verification,175b_finetuning,175b_verification");
  std::vector<Column> columns = {{"6b_finetuning", {}},
                                 {"6b_verification", {}},
                                 {"175b_finetuning", {}},
                                 {"175b_verification", {}}};
  while (std::getline(text, line)) {
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, ',');
    for (Column& column : columns) {
      std::getline(fields, field, ',');
      column.runs.push_back({static_cast<std::uint8_t>(field == "1" ? 1 : 0)});
    }
  }
  EXPECT_EQ(columns[0].runs.size(), kItems);
  return columns;
}

TEST(PublishedPairs, FivePassAndOneRegression) {
  const auto columns = read_columns();
  int passes = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      const Comparison c = compare(columns[i].cell(), columns[j].cell());
      const Decision d = decide(c, kRule);
      if (i == 1 && j == 2) {
        EXPECT_EQ(d.verdict, Verdict::kRegression);
        EXPECT_TRUE(d.loss_beyond_margin);
        EXPECT_NEAR(c.loss, 4.32, 0.005);
        // The specification's figures are rounded from an interval without its small-sample term.
        EXPECT_NEAR(d.interval95_new.low, 1.51, 0.015);
        EXPECT_NEAR(d.interval95_new.high, 7.14, 0.015);
      } else {
        EXPECT_EQ(d.verdict, Verdict::kPass) << c.reference << ' ' << c.candidate;
        ++passes;
      }
    }
  }
  EXPECT_EQ(passes, 5);
}

// Items drawn anew with their differences of -1, 0 and 1: two binomial draws a sample.
Interval bootstrap(int lost, int gained, int draws) {
  std::mt19937_64 random(7);
  const double n = kItems;
  std::vector<double> losses;
  std::binomial_distribution<int> draw_lost(kItems, lost / n);
  for (int i = 0; i < draws; ++i) {
    const int a = draw_lost(random);
    std::binomial_distribution<int> draw_gained(kItems - a, gained / (n - lost));
    losses.push_back(100 * (a - draw_gained(random)) / n);
  }
  std::sort(losses.begin(), losses.end());
  const auto at = [&](double share) {
    return losses[static_cast<std::size_t>(share * static_cast<double>(draws))];
  };
  return {at(0.025), at(0.975)};
}

TEST(PublishedPairs, AllSixIntervalsAgreeWithABootstrap) {
  const auto columns = read_columns();
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      const Comparison c = compare(columns[i].cell(), columns[j].cell());
      const Interval ours = decide(c, kRule).interval95_new;
      const Interval drawn = bootstrap(c.lost, c.gained, 100'000);
      EXPECT_NEAR(ours.low, drawn.low, 0.1) << c.reference << ' ' << c.candidate;
      EXPECT_NEAR(ours.high, drawn.high, 0.1) << c.reference << ' ' << c.candidate;
    }
  }
}

// The rule from the counts of lost and gained items alone.
Verdict implied(int lost, int gained) {
  const double n = kItems;
  const double difference = lost - gained;
  const double loss = 100 * difference / n;
  const double error = 100 / n * std::sqrt(lost + gained + 2 - difference * difference / n);
  if (loss + 1.645 * error < 1) return Verdict::kPass;
  return loss - 1.645 * error > 0 ? Verdict::kRegression : Verdict::kInconclusive;
}

// `better`, but the first items of a fixed shuffle as `worse` answers them: as few as lose `loss`.
Column mixed(const Column& better, const Column& worse, double loss) {
  std::vector<std::pair<std::string, std::size_t>> order;
  for (std::size_t i = 0; i < kItems; ++i) order.emplace_back(hash_hex(std::to_string(i)), i);
  std::sort(order.begin(), order.end());
  Column column{"mixed", better.runs};
  int lost = 0;
  for (const auto& [hash, item] : order) {
    if (100.0 * lost / kItems >= loss) break;
    lost += better.runs[item][0] - worse.runs[item][0];
    column.runs[item] = worse.runs[item];
  }
  return column;
}

TEST(PublishedPairs, MixedPairsGetTheVerdictThatTheRuleImplies) {
  const auto columns = read_columns();
  // Pairs that lose (the better column first), and losses of about half a point, one and two.
  const std::array<std::array<std::size_t, 2>, 4> pairs = {{{1, 2}, {1, 0}, {3, 2}, {3, 1}}};
  int seen[3] = {0, 0, 0};
  for (const auto& [better, worse] : pairs) {
    const CellOutcomes reference = columns[better].cell();
    const std::array<double, 3> wanted = {0.5, 1, 2};
    for (const double loss : wanted) {
      const Comparison c = compare(reference, mixed(columns[better], columns[worse], loss).cell());
      ASSERT_NEAR(c.loss, loss, 0.08);
      const Verdict verdict = decide(c, kRule).verdict;
      EXPECT_EQ(verdict, implied(c.lost, c.gained)) << c.lost << ' ' << c.gained;
      ++seen[static_cast<int>(verdict)];
    }
  }
  // Half a point is within the zone of indifference, two points are shown: both kinds occur.
  EXPECT_GT(seen[static_cast<int>(Verdict::kRegression)], 0);
  EXPECT_GT(seen[static_cast<int>(Verdict::kInconclusive)] + seen[static_cast<int>(Verdict::kPass)],
            0);
}

}  // namespace
}  // namespace cupel
