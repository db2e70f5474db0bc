#include "cupel/assay/sequential.h"

#include <cmath>

#include "assay/cells.h"
#include "assay/simulation.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/assay/sequential_plan.h"
#include "cupel/base/error.h"

namespace cupel {
namespace {

using test::Runs;
using test::simulate_looks;
using test::SimulatedStudy;
using test::Truth;
using ::testing::HasSubstr;

TEST(LookLevel, SharesTheLevelAmongTheLooks) {
  const LookPlan plan;
  EXPECT_NEAR(look_level({}, 1, 1, plan), 0.0125, 1e-15);
  EXPECT_NEAR(normal_quantile(1 - 0.0125), 2.24, 0.005);
  const std::vector<TakenLook> first{{1, 1, 0.0125}};
  EXPECT_NEAR(look_level(first, 2, 2, plan), 0.0125, 1e-15);
  // A look that the plan does not have takes its part of what is left: 3, 4 and 8 repeats.
  const std::vector<TakenLook> two{{1, 1, 0.0125}, {2, 2, 0.0125}};
  EXPECT_NEAR(look_level(two, 3, 3, plan), 0.025 / 3, 1e-15);
  // The same look once more costs nothing and grants nothing.
  EXPECT_EQ(look_level(two, 2, 2, plan), 0.0125);
  // Looks that were passed over have cost nothing.
  EXPECT_NEAR(look_level({}, 4, 4, plan), 0.025, 1e-15);
}

TEST(LookLevel, NothingIsLeftBeyondThePlan) {
  const std::vector<TakenLook> once{{1, 1, 0.05}};
  EXPECT_EQ(look_level(once, 2, 2, {.repeats = {1}}), 0);
  std::vector<TakenLook> all;
  for (const int r : {1, 2, 4, 8}) all.push_back({r, r, look_level(all, r, r, {})});
  EXPECT_EQ(look_level(all, 16, 16, {}), 0);
}

TEST(LookPlan, RefusesASenselessOne) {
  EXPECT_THROW(check(LookPlan{.repeats = {}}), InputError);
  EXPECT_THROW(check(LookPlan{.repeats = {0, 1}}), InputError);
  EXPECT_THROW(check(LookPlan{.repeats = {2, 2}}), InputError);
  EXPECT_THROW(check(LookPlan{.repeats = {1}, .alpha = 0.5}), InputError);
  EXPECT_NO_THROW(check(LookPlan{}));
}

ArmAtLook arm(CellOutcomes outcomes, bool identical = false) {
  return {std::move(outcomes), identical};
}

LookDecision look(const ArmAtLook& ref, const ArmAtLook& cand, const LookRule& rule,
                  const std::vector<TakenLook>& taken = {}) {
  const std::vector<std::vector<TakenLook>> all{taken};
  return decide_at_look(ref, {&cand, 1}, rule, all).front();
}

TEST(DecideAtLook, UsesTheBoundOfItsLevel) {
  // Loss 1.06, se_new 0.29: above 0 at z = 1.645 and 2.24, not at 4.
  const auto [ref, cand] = test::single_runs(1319, 14, 0);
  const LookDecision one = look(arm(ref), arm(cand), {.margin = 1, .plan = {.repeats = {1}}});
  EXPECT_EQ(one.decision.verdict, Verdict::kRegression);
  EXPECT_NEAR(one.decision.interval90.low, one.comparison.loss - kDecisionZ * one.comparison.se_new,
              1e-9);
  const LookDecision four = look(arm(ref), arm(cand), {.margin = 1});
  EXPECT_NEAR(four.decision.interval90.low, four.comparison.loss - 2.2414 * four.comparison.se_new,
              1e-4);
  EXPECT_TRUE(four.final);
  const LookRule strict{.margin = 1, .plan = {.repeats = {1}, .alpha = 1e-5}};
  EXPECT_EQ(look(arm(ref), arm(cand), strict).decision.verdict, Verdict::kInconclusive);
}

TEST(DecideAtLook, NothingLeftDecidesNothing) {
  const auto [ref, cand] = test::single_runs(1319, 100, 0);
  const LookDecision l =
      look(arm(ref), arm(cand), {.margin = 1, .plan = {.repeats = {1}}}, {{2, 2, 0.05}});
  EXPECT_EQ(l.decision.verdict, Verdict::kInconclusive);
  EXPECT_TRUE(l.final);
  EXPECT_THAT(l.reason, HasSubstr("only fresh records"));
}

TEST(DecideAtLook, IdenticalPassesCountOnce) {
  auto [ref, cand] = test::single_runs(1319, 40, 35);
  const Comparison once = compare(ref, cand, true);
  for (CellOutcomes* c : {&ref, &cand}) {
    for (auto& item : c->items) item.correct.assign(8, item.correct[0]);
  }
  // Eight equal passes would pass by the item set's error; one does not.
  ASSERT_EQ(look(arm(ref), arm(cand), {.margin = 1, .plan = {.repeats = {8}}}).decision.verdict,
            Verdict::kPass);
  const LookDecision l = look(arm(ref, true), arm(cand, true), {.margin = 1}, {{1, 1, 0.0125}});
  EXPECT_EQ(l.comparison.se_new, once.se_new);
  EXPECT_FALSE(l.comparison.se_set);
  EXPECT_EQ(l.decision.verdict, Verdict::kInconclusive);
  EXPECT_EQ(l.look, (TakenLook{1, 1, 0.0125}));
  EXPECT_TRUE(l.final);
  EXPECT_THAT(l.reason, HasSubstr("every pass is the same"));
  // One noisy arm: the other counts once, and run noise is not identifiable.
  const LookDecision half = look(arm(ref, true), arm(cand), {.margin = 1});
  EXPECT_EQ(half.comparison.repeats_reference, 1);
  EXPECT_EQ(half.comparison.repeats_candidate, 8);
}

TEST(DecideAtLook, EndsWhereRepeatsCannotDecide) {
  // 200 items changed for good and a loss of 1.5 points: not even without run noise.
  std::vector<Runs> a(1319, Runs{1, 1});
  std::vector<Runs> b = a;
  for (std::size_t i = 0; i < 110; ++i) b[i] = {0, 0};
  for (std::size_t i = 110; i < 200; ++i) a[i] = {0, 0};
  const LookDecision l = look(arm(test::cell("r", a)), arm(test::cell("c", b)), {.margin = 1});
  EXPECT_EQ(l.decision.verdict, Verdict::kInconclusive);
  EXPECT_TRUE(l.final);
  EXPECT_THAT(l.reason, HasSubstr("Repeats cannot decide"));
}

TEST(Anytime, EvidenceByHand) {
  // One pass, one item lost, none gained: the mean over lambda of 1 + lambda.
  const auto [ref, cand] = test::single_runs(100, 1, 0);
  const AnytimeEvidence e = anytime_evidence(ref, cand, 1);
  EXPECT_EQ(e.passes, 1);
  const double sum = 0.01 + 0.02 + 0.04 + 0.07 + 0.11 + 0.17 + 0.26 + 0.4 + 0.6 + 0.85;
  EXPECT_NEAR(e.against_no_loss, 1 + sum / 10, 1e-12);
  // The mean loss is the margin: no evidence against it.
  EXPECT_EQ(e.against_margin, 1);
}

TEST(UntilDecided, StopsAtTheFirstLookThatDecides) {
  SimulatedStudy study({.unstable = 160}, 3);
  std::vector<std::pair<std::size_t, int>> asked;
  study.draw(1, 1);
  const auto extend = [&](std::size_t which, int repeats) {
    asked.emplace_back(which, repeats);
    study.extend(repeats, repeats);
    return which == 0 ? study.reference() : study.candidate();
  };
  std::vector<int> looks;
  const UntilDecided done = run_until_decided(
      {.margin = 1}, 1, extend, [&](const UntilDecided& u) { looks.push_back(u.repeats); });
  EXPECT_EQ(done.decisions[0].decision.verdict, Verdict::kPass);
  EXPECT_TRUE(done.decisions[0].final);
  EXPECT_EQ(static_cast<std::size_t>(done.looks[0]), looks.size());
  EXPECT_EQ(asked.size(), 2 * looks.size());
  EXPECT_EQ(looks.back(), done.repeats);
}

TEST(UntilDecided, ADecidedCandidateIsNotAskedAgain) {
  // The second is lost beyond doubt at the first look; the first needs repeats.
  SimulatedStudy noisy({.unstable = 320}, 4);
  noisy.draw(1, 1);
  std::vector<int> asked(3);
  const auto extend = [&](std::size_t which, int repeats) {
    ++asked[which];
    noisy.extend(repeats, repeats);
    if (which == 0) return noisy.reference();
    if (which == 1) return noisy.candidate();
    ArmAtLook lost = noisy.reference();
    lost.outcomes.name = "lost";
    for (std::size_t i = 700; i < 900; ++i) {
      for (auto& x : lost.outcomes.items[i].correct) x = 0;
    }
    return lost;
  };
  const UntilDecided done = run_until_decided({.margin = 1}, 2, extend);
  EXPECT_EQ(done.decisions[1].decision.verdict, Verdict::kRegression);
  EXPECT_EQ(asked[2], 1);
  EXPECT_GT(asked[1], 1);
  EXPECT_EQ(asked[0], asked[1]);
}

TEST(UntilDecided, ADeterministicCellIsAskedOnce) {
  const auto [ref, cand] = test::single_runs(1319, 40, 35);
  int calls = 0;
  const auto extend = [&, &r = ref, &c = cand](std::size_t which, int) {
    ++calls;
    return arm(which == 0 ? r : c);
  };
  const UntilDecided done = run_until_decided({.margin = 1, .deterministic = true}, 1, extend);
  EXPECT_EQ(done.decisions[0].decision.verdict, Verdict::kInconclusive);
  EXPECT_EQ(done.decisions[0].look.alpha, kAlpha);  // the only look there will be
  EXPECT_EQ(calls, 2);
}

// The reduced form of `make check-long`.
TEST(SequentialCalibration, ErrorsAreRareAndPowerIsAsPlanned) {
  constexpr double kMargin = 100.0 * 14 / test::kItems;
  const LookRule rule{.margin = kMargin};
  const Truth none{.unstable = 160, .flipped = 66};
  EXPECT_LE(simulate_looks(none, rule, 0, 1500, 41).regression, 0.057);
  const Truth lost{.unstable = 160, .dead = 14};
  const test::SequentialRates at_margin = simulate_looks(lost, rule, 0, 1500, 42);
  EXPECT_LE(at_margin.pass, 0.057);
  EXPECT_GE(at_margin.coverage, 0.94);
  const Study study{test::kItems, 160, 14, 1, 1};
  const Outcome plan = sequential_outcome(study, lost.loss(), kMargin, rule.plan);
  EXPECT_NEAR(at_margin.regression, plan.regression, 0.045);
  EXPECT_NEAR(at_margin.repeats, plan.repeats, 0.4);
  const LookRule anytime{.margin = kMargin, .plan = {}, .bound = SequentialBound::kAnytime};
  EXPECT_LE(simulate_looks({.unstable = 160}, anytime, 0, 700, 43).regression, 0.03);
  EXPECT_LE(simulate_looks(lost, anytime, 0, 700, 44).pass, 0.03);
}

TEST(SequentialPlan, OneLookIsThePlanOfOneLook) {
  const Study study{test::kItems, 160, 20, 4, 4};
  const Outcome o = sequential_outcome(study, 1.5, 1, {.repeats = {4}});
  EXPECT_NEAR(o.regression, regression_power(study, 1.5), 0.002);
  EXPECT_EQ(o.repeats, 4);
  // Without run noise the outcome is certain.
  const Outcome quiet = sequential_outcome({test::kItems, 0, 0, 1, 1}, 0, 1, {});
  EXPECT_NEAR(quiet.pass, 1, 1e-6);
  EXPECT_NEAR(quiet.repeats, 1, 1e-6);
  EXPECT_THROW(sequential_outcome(study, 1, 1, {}, 0), InputError);
}

}  // namespace
}  // namespace cupel
