#include "cupel/assay/report/flips.h"

#include <limits>

#include "assay/report/example.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::Answers;
using test::answers_as_records;

TEST(Flips, AreTheItemsThatTheComparisonCounts) {
  const AssayReport report = test::report_on(test::changed(40, 3, 2));
  const ComparisonRow& row = report.comparisons.front();
  ASSERT_EQ(row.flips.size(), 5U);
  EXPECT_EQ(row.comparison.lost, 3);
  EXPECT_EQ(row.comparison.gained, 2);
  for (int i = 0; i < 5; ++i) {
    const Flip& f = row.flips[static_cast<std::size_t>(i)];
    EXPECT_EQ(f.item, i);
    EXPECT_EQ(f.lost, i < 3);
    EXPECT_DOUBLE_EQ(f.change, i < 3 ? 1 : -1);
    EXPECT_EQ(f.gold, i + 3);
    EXPECT_EQ(f.reference.correct, f.lost);
    EXPECT_NE(f.candidate.correct, f.lost);
    EXPECT_EQ(f.token, 3);
    EXPECT_EQ(f.text.before, fmt::format("{} + 3 = ", i));
  }
}

// With repeats: of the runs that show the flip, the first.
TEST(Flips, ShowARightAndAWrongRun) {
  const auto a = answers_as_records({"a", {{0, 1, 1}, {1, 0, 1}, {1, 0, 0}}});
  const auto b = answers_as_records({"b", {{0, 0, 1}, {0, 1, 1}, {1, 1, 0}}});
  const std::vector<Flip> flips = find_flips(a, b);
  ASSERT_EQ(flips.size(), 2U);  // the middle item has the same share
  EXPECT_EQ(flips[0].item, 0);
  EXPECT_TRUE(flips[0].lost);
  EXPECT_EQ(flips[0].reference.repeat, 1);
  EXPECT_EQ(flips[0].candidate.repeat, 0);
  EXPECT_EQ(flips[1].item, 2);
  EXPECT_FALSE(flips[1].lost);
  EXPECT_EQ(flips[1].reference.repeat, 1);
  EXPECT_EQ(flips[1].candidate.repeat, 0);
}

struct MarginCase {
  float reference, candidate;
  int step_reference, step_candidate;
  NearTie expected;
};

// The records keep the smallest margin alone: elsewhere it is a lower bound.
TEST(Flips, ANearTieIsClaimedOnlyWhereItIsKnown) {
  const float unknown = std::numeric_limits<float>::quiet_NaN();
  const std::vector<MarginCase> cases = {{0.1F, 3, 3, 3, NearTie::kYes},
                                         {3, 0.1F, 3, 3, NearTie::kYes},
                                         {3, 3, 3, 3, NearTie::kNo},
                                         {3, 3, 0, 0, NearTie::kNo},
                                         {0.1F, 3, 0, 3, NearTie::kUnknown},
                                         {0.1F, 0.1F, 0, 3, NearTie::kYes},
                                         {unknown, 3, 3, 3, NearTie::kUnknown},
                                         {kNearTie, 3, 3, 3, NearTie::kNo}};
  for (const MarginCase& c : cases) {
    auto a = answers_as_records({"a", {{1}}});
    auto b = answers_as_records({"b", {{0}}});
    a[0].min_margin = c.reference;
    a[0].min_margin_step = c.step_reference;
    b[0].min_margin = c.candidate;
    b[0].min_margin_step = c.step_candidate;
    EXPECT_EQ(find_flips(a, b).at(0).near_tie, c.expected)
        << c.reference << " at " << c.step_reference << ", " << c.candidate << " at "
        << c.step_candidate;
  }
}

TEST(Flips, WithoutTokenIdsOnlyTheTextIsAligned) {
  auto a = answers_as_records({"a", {{1}}});
  auto b = answers_as_records({"b", {{0}}});
  a[0].output_ids.clear();
  const Flip f = find_flips(a, b).at(0);
  EXPECT_EQ(f.token, std::nullopt);
  EXPECT_EQ(f.text.before, "0 + 3 = ");
  EXPECT_EQ(f.near_tie, NearTie::kUnknown);
}

TEST(Flips, ResultsOfOtherToolsHaveNoGold) {
  auto a = answers_as_records({"a", {{1}}});
  auto b = answers_as_records({"b", {{0}}});
  a[0].identity.build.clear();
  EXPECT_EQ(find_flips(a, b).at(0).gold, std::nullopt);
}

TEST(MarginSentence, SaysWhatIsKnown) {
  FlippedAnswer answer;
  EXPECT_EQ(margin_sentence(answer, 3), "The margin is not known.");
  answer.min_margin = 0.125F;
  answer.min_margin_step = 3;
  EXPECT_EQ(margin_sentence(answer, 3),
            "Margin 0.125 at this token, the smallest of the answer: a near-tie.");
  EXPECT_EQ(
      margin_sentence(answer, 4),
      "The smallest margin of the answer is 0.125, at token 3; that of this token is larger.");
  answer.min_margin = 2;
  EXPECT_EQ(margin_sentence(answer, 4),
            "The smallest margin of the answer is 2, at token 3: no near-tie here.");
}

TEST(Agreement, BetweenCellsIsOverAllPairsOfRepeats) {
  // Item 0: right twice against right, wrong; item 1: the same; item 2: wrong against right.
  const auto a = answers_as_records({"a", {{1, 1}, {1, 1}, {0, 0}}});
  const auto b = answers_as_records({"b", {{1, 0}, {1, 1}, {1, 1}}});
  const Agreement text = text_agreement_between(a, b, "pair");
  EXPECT_EQ(text.pairs, 12);
  EXPECT_EQ(text.differing, 6);
  EXPECT_DOUBLE_EQ(text.rate, 0.5);
  EXPECT_EQ(text.independent_pairs, 6);
  EXPECT_EQ(answer_agreement_between(a, b, "pair").differing, 6);
  EXPECT_THROW(text_agreement_between(a, std::span(b).first(4), "pair"), InputError);
  EXPECT_THROW(text_agreement_between(std::span(a).first(4), b, "pair"), InputError);
}

}  // namespace
}  // namespace cupel
