#include "cupel/assay/verdict.h"

#include "assay/cells.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cupel/assay/plan.h"

namespace cupel {
namespace {

using test::single_runs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr VerdictRule kRule{1.0, kDecisionZ, kAlpha};

Comparison plain(double loss, double se_new, std::optional<double> se_set = std::nullopt) {
  Comparison c;
  c.reference = "ref";
  c.candidate = "cand";
  c.items = 1319;
  c.repeats_reference = c.repeats_candidate = se_set ? 4 : 1;
  c.loss = loss;
  c.se_new = se_new;
  c.se_set = se_set;
  if (se_set) c.unstable_reference = c.unstable_candidate = c.changed_squares = 0;
  return c;
}

TEST(Decide, TheThreeVerdictsAndTheirGrades) {
  EXPECT_EQ(decide(plain(0, 0.5), kRule).verdict, Verdict::kPass);
  EXPECT_EQ(decide(plain(0.5, 0.5), kRule).verdict, Verdict::kInconclusive);
  EXPECT_EQ(decide(plain(1.5, 0.5), kRule).verdict, Verdict::kRegression);
  EXPECT_FALSE(decide(plain(1.5, 0.5), kRule).loss_beyond_margin);
  EXPECT_TRUE(decide(plain(2.5, 0.5), kRule).loss_beyond_margin);
  const Decision small = decide(plain(0.5, 0.2), kRule);
  EXPECT_EQ(small.verdict, Verdict::kPass);
  EXPECT_TRUE(small.loss_inside_margin);
  EXPECT_FALSE(decide(plain(0, 0.2), kRule).loss_inside_margin);
}

TEST(Decide, PassLooksAtTheItemSetAndRegressionAtNewItems) {
  // The upper bound from the item set passes where that of new items would not.
  EXPECT_EQ(decide(plain(0, 0.9, 0.3), kRule).verdict, Verdict::kPass);
  // The lower bound from the item set would show a loss; that of new items does not.
  EXPECT_EQ(decide(plain(1.2, 0.9, 0.3), kRule).verdict, Verdict::kInconclusive);
  const Decision d = decide(plain(1.2, 0.9, 0.3), kRule);
  EXPECT_NEAR(d.interval90.low, 1.2 - 1.645 * 0.9, 1e-12);
  EXPECT_NEAR(d.interval90.high, 1.2 + 1.645 * 0.3, 1e-12);
  EXPECT_NEAR(d.interval95_set.value_or(Interval{}).high, 1.2 + kDisplayZ * 0.3, 1e-12);
}

RC_GTEST_PROP(Decide, VerdictsFollowFromTheBounds, ()) {
  const double loss = *rc::gen::inRange(-400, 400) / 100.0;
  const double se_new = *rc::gen::inRange(1, 200) / 100.0;
  const double se_set = *rc::gen::inRange(1, 200) / 100.0;
  const double margin = *rc::gen::inRange(1, 300) / 100.0;
  const Comparison c = plain(loss, se_new, se_set);
  const Decision d = decide(c, {margin, kDecisionZ, kAlpha});
  const bool pass = loss + 1.645 * se_set < margin;
  const bool shown = loss - 1.645 * se_new > 0;
  RC_ASSERT((d.verdict == Verdict::kPass) == pass);
  RC_ASSERT((d.verdict == Verdict::kRegression) == (!pass && shown));
  RC_ASSERT(d.loss_inside_margin == (pass && shown));
  RC_ASSERT(d.remedy.text.empty() == (d.verdict != Verdict::kInconclusive));
  // A larger margin never turns PASS into anything else.
  if (pass) RC_ASSERT(decide(c, {margin + 1, kDecisionZ, kAlpha}).verdict == Verdict::kPass);
}

TEST(Decide, RefusesASenselessRule) {
  for (const double margin : {0.0, -1.0, 101.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(decide(plain(0, 1), {margin, kDecisionZ, kAlpha}), InputError);
  }
  EXPECT_THROW(decide(plain(0, 1), {1, 0, kAlpha}), InputError);
  EXPECT_THROW(decide(plain(0, 1), {1, kDecisionZ, 0.5}), InputError);
}

TEST(Remedy, AnUnknownNoiseIsPlannedAsIfAllChangesWereNoise) {
  const auto [ref, cand] = single_runs(1319, 40, 40);
  const Decision d = decide(compare(ref, cand), kRule);
  ASSERT_EQ(d.verdict, Verdict::kInconclusive);
  // u at most 2 * 80.
  EXPECT_EQ(d.remedy.repeats, repeats_to_pass(1319, 160, 1));
  EXPECT_TRUE(d.remedy.items);
  EXPECT_THAT(d.remedy.text, AllOf(HasSubstr("3 repeats in each arm (now 1 and 1)"),
                                   HasSubstr("run noise"), HasSubstr("permanent")));
}

TEST(Remedy, ADeterministicCellNeverAsksForRepeats) {
  {
    const auto [ref, cand] = single_runs(1319, 40, 40);
    const Decision d = decide(compare(ref, cand, true), kRule);
    ASSERT_EQ(d.verdict, Verdict::kInconclusive);
    EXPECT_FALSE(d.remedy.repeats);
    EXPECT_EQ(d.remedy.items, items_needed(1319, 80, 1));
    EXPECT_THAT(d.remedy.text, AllOf(HasSubstr("(now 1319)"), Not(HasSubstr("repeat"))));
  }
  // 18 changed items are few enough; the loss is between 0 and the margin.
  const auto [ref, cand] = single_runs(1319, 12, 6);
  const Decision d = decide(compare(ref, cand, true), kRule);
  ASSERT_EQ(d.verdict, Verdict::kInconclusive);
  EXPECT_FALSE(d.remedy.repeats);
  EXPECT_FALSE(d.remedy.items);
  EXPECT_THAT(d.remedy.text, HasSubstr("nothing by repeating"));
}

TEST(Remedy, KnownNoiseAsksForMoreRepeatsThanWereSeen) {
  Comparison c = plain(0, 0.7, 0.65);
  c.repeats_reference = c.repeats_candidate = 2;
  c.unstable_reference = c.unstable_candidate = 320;
  EXPECT_EQ(decide(c, kRule).remedy.repeats, 6);
  EXPECT_FALSE(decide(c, kRule).remedy.items);
  c.repeats_reference = c.repeats_candidate = 8;  // more than planned, and still undecided
  EXPECT_EQ(decide(c, kRule).remedy.repeats, 9);
  // Many items changed for good and a loss above the margin: only more items help.
  c.loss = 1.3;
  c.se_new = 1;
  c.changed_squares = 150;
  const Remedy remedy = decide(c, kRule).remedy;
  EXPECT_FALSE(remedy.repeats);
  EXPECT_TRUE(remedy.items);
}

TEST(Family, HolmHoldsRegressionAndLeavesPass) {
  // p = 0.04 each: alone a REGRESSION, three together are not.
  const double z = normal_quantile(0.96);
  const Comparison weak = plain(3, 3 / z);
  EXPECT_EQ(decide(weak, kRule).verdict, Verdict::kRegression);
  const std::vector<Comparison> three{weak, weak, plain(0, 0.1)};
  const auto d = decide_family(three, kRule);
  EXPECT_EQ(d[0].verdict, Verdict::kInconclusive);
  EXPECT_TRUE(d[0].held_by_family);
  EXPECT_NEAR(d[0].p_holm, 0.12, 1e-9);
  EXPECT_EQ(d[2].verdict, Verdict::kPass);
  EXPECT_THAT(notes(three[0], d[0]), Contains(HasSubstr("Holm's p over the family is 0.120")));
  // A strong one stays.
  const std::vector<Comparison> mixed{plain(3, 0.5), weak};
  EXPECT_EQ(decide_family(mixed, kRule)[0].verdict, Verdict::kRegression);
  EXPECT_EQ(decide_family(mixed, kRule)[1].verdict, Verdict::kRegression);
}

TEST(ExitCode, TheWorstVerdictWins) {
  Decision pass;
  pass.verdict = Verdict::kPass;
  Decision unclear;
  Decision worse;
  worse.verdict = Verdict::kRegression;
  EXPECT_EQ(exit_code(std::vector{pass, pass}), ExitCode::kPass);
  EXPECT_EQ(exit_code(std::vector{pass, unclear}), ExitCode::kInconclusive);
  EXPECT_EQ(exit_code(std::vector{worse, unclear, pass}), ExitCode::kRegression);
  EXPECT_EQ(exit_code({}), ExitCode::kInconclusive);
}

TEST(Notes, SayWhatTheVerdictRestsOn) {
  const auto [ref, cand] = single_runs(1319, 10, 4);
  const Comparison noisy = compare(ref, cand);
  EXPECT_THAT(notes(noisy, decide(noisy, kRule)),
              AllOf(Contains(HasSubstr("not identifiable")), Contains(HasSubstr("these launches")),
                    Contains(HasSubstr("McNemar test, two-sided: p = 0.18"))));
  const Comparison quiet = compare(ref, cand, true);
  EXPECT_THAT(notes(quiet, decide(quiet, kRule)),
              AllOf(Contains(HasSubstr("Deterministic")), Not(Contains(HasSubstr("launches")))));
}

}  // namespace
}  // namespace cupel
