#include "cupel/assay/probe_verdict.h"

#include <cmath>

#include "support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::expect_input_error;
using ::testing::HasSubstr;

ProbeResult result(ProbeKind kind, const std::vector<double>& faults) {
  ProbeResult r;
  r.kind = kind;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    r.items.push_back({static_cast<int>(i), "h" + std::to_string(i), faults[i]});
  }
  return r;
}

std::vector<double> first(int ones, int all) {
  std::vector<double> faults(static_cast<std::size_t>(all));
  std::fill_n(faults.begin(), ones, 1.0);
  return faults;
}

// 50 prompts, 5 wrong beside 0: loss 10, SE = 100 * sqrt(5 - 25/50 + 2) / 50; t(49) at 5 %
// = 1.6766.
TEST(CompareProbes, SharesByHand) {
  const ProbeComparison c = compare_probes(result(ProbeKind::kPhase, first(0, 50)),
                                           result(ProbeKind::kPhase, first(5, 50)), "a", "b");
  EXPECT_DOUBLE_EQ(c.loss, 10);
  EXPECT_NEAR(c.standard_error, 100 * std::sqrt(6.5) / 50, 1e-12);
  EXPECT_NEAR(c.bounds.low, 10 - 1.67655 * c.standard_error, 1e-3);
  EXPECT_NEAR(c.bounds.high, 10 + 1.67655 * c.standard_error, 1e-3);
  EXPECT_NEAR(c.p, 0.0277, 2e-3);
  EXPECT_FALSE(c.verdict);
}

// Nats a token: mean and standard error of paired differences 0.1, 0.2, 0.3, 0.4.
TEST(CompareProbes, NatsByHand) {
  const ProbeComparison c = compare_probes(result(ProbeKind::kNll, {1, 2, 3, 4}),
                                           result(ProbeKind::kNll, {1.1, 2.2, 3.3, 4.4}), "a", "b");
  EXPECT_NEAR(c.loss, 0.25, 1e-12);
  EXPECT_NEAR(c.standard_error, std::sqrt(0.05 / 3 / 4), 1e-12);
  EXPECT_NEAR(c.bounds.low, 0.25 - 2.35336 * c.standard_error, 1e-5);  // t(3)
  const ProbeComparison same =
      compare_probes(result(ProbeKind::kNll, {1, 2}), result(ProbeKind::kNll, {1, 2}), "a", "b");
  EXPECT_EQ(same.p, 1);
  EXPECT_EQ(same.bounds.high, 0);
}

TEST(CompareProbes, OtherPromptsAreRefusedByName) {
  ProbeResult other = result(ProbeKind::kCopy, first(0, 5));
  other.items[3].prompt_hash = "else";
  expect_input_error(
      [&] { compare_probes(result(ProbeKind::kCopy, first(0, 5)), other, "a", "b"); },
      {"probe copy", "a and b", "at 3"});
  expect_input_error(
      [&] {
        compare_probes(result(ProbeKind::kCopy, first(0, 5)), result(ProbeKind::kCopy, first(0, 4)),
                       "a", "b");
      },
      {"at 4"});
  expect_input_error(
      [&] {
        compare_probes(result(ProbeKind::kCopy, {0}), result(ProbeKind::kCopy, {0}), "a", "b");
      },
      {"two prompts"});
}

TEST(CompareProbes, PhaseTakesThePromptsThatBothHold) {
  ProbeResult later = result(ProbeKind::kPhase, first(6, 12));
  later.items.erase(later.items.begin());
  const ProbeComparison c =
      compare_probes(result(ProbeKind::kPhase, first(0, 10)), later, "a", "b");
  EXPECT_EQ(c.items, 9);
  EXPECT_DOUBLE_EQ(c.loss, 100 * 5 / 9.0);
}

TEST(DecideProbes, OnlyWithAMarginAndInTheFamily) {
  const ProbeResult good = result(ProbeKind::kPhase, first(0, 100));
  std::vector<ProbeComparison> c = {
      compare_probes(good, good, "a", "same"),
      compare_probes(good, result(ProbeKind::kPhase, first(20, 100)), "a", "worse"),
      compare_probes(good, result(ProbeKind::kPhase, first(5, 100)), "a", "some"),
      compare_probes(good, result(ProbeKind::kPhase, first(50, 100)), "a", "unjudged")};
  for (std::size_t i = 0; i < 3; ++i) c[i].margin = 3;
  decide_probes(c, {});
  EXPECT_EQ(c[0].verdict, Verdict::kPass);
  EXPECT_EQ(c[1].verdict, Verdict::kRegression);
  EXPECT_EQ(c[3].verdict, std::nullopt);
  EXPECT_EQ(gating_p_values(c).size(), 3U);
  // p = 0.032 alone; beside the others it is the second of three.
  EXPECT_EQ(c[2].verdict, Verdict::kInconclusive);
  EXPECT_NEAR(c[2].p_holm, 2 * c[2].p, 1e-12);
  std::vector<ProbeComparison> alone = {c[2]};
  decide_probes(alone, {});
  EXPECT_EQ(alone[0].verdict, Verdict::kRegression);
  const std::vector<double> family = {0.5};
  decide_probes(alone, family);
  EXPECT_EQ(alone[0].verdict, Verdict::kInconclusive);
}

TEST(DecideProbes, SaysHowManyPromptsWouldDecide) {
  const ProbeResult good = result(ProbeKind::kPhase, first(0, 30));
  std::vector<ProbeComparison> c = {compare_probes(good, good, "a", "b")};
  c[0].margin = 2;
  decide_probes(c, {});
  EXPECT_EQ(c[0].verdict, Verdict::kInconclusive);
  // 1.645 * 100 * sqrt(2) / N = 2.
  EXPECT_THAT(c[0].remedy, HasSubstr("about 117 prompts (now 30)"));
}

TEST(DecideProbes, NondeterminismIsNoRegression) {
  expect_input_error([] { check_probe_margin(ProbeKind::kRepeatability, 1); },
                     {"repeatability", "no regression"});
  expect_input_error([] { check_probe_margin(ProbeKind::kPhase, 0); }, {"margin above 0"});
  EXPECT_NO_THROW(check_probe_margin(ProbeKind::kNll, 0.01));
}

TEST(ProbeFigure, HasAnInterval) {
  const ProbeFigure share = probe_figure(result(ProbeKind::kPhase, first(1, 10)));
  EXPECT_DOUBLE_EQ(share.mean, 10);
  EXPECT_NEAR(share.interval95.low, 1.79, 0.01);  // Wilson
  EXPECT_NEAR(share.interval95.high, 40.42, 0.01);
  const ProbeFigure nats = probe_figure(result(ProbeKind::kNll, {1, 2, 3}));
  EXPECT_DOUBLE_EQ(nats.mean, 2);
  EXPECT_NEAR(nats.interval95.high, 2 + 4.30265 / std::sqrt(3), 1e-4);
}

}  // namespace
}  // namespace cupel
