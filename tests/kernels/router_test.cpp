#include "cupel/kernels/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/random.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cupel {
namespace {

using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::int32_t> topk(const std::vector<float>& scores, std::size_t k) {
  std::vector<std::int32_t> chosen(k, -1);
  select_topk(scores, k, chosen.data());
  return chosen;
}

// By a stable sort of the whole list.
std::vector<std::int32_t> topk_by_sort(const std::vector<float>& scores, std::size_t k) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return std::isnan(y) ? !std::isnan(x) : x > y;
  });
  order.resize(k);
  std::ranges::sort(order);
  return order;
}

TEST(SelectTopk, TiesGoToTheLowestIndex) {
  EXPECT_THAT(topk({1, 3, 3, 2, 3}, 2), ElementsAre(1, 2));
  EXPECT_THAT(topk({5, 5, 5, 5}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(topk({-0.0f, 0.0f}, 1), ElementsAre(0));
  EXPECT_THAT(topk({2, 1}, 2), ElementsAre(0, 1));
  EXPECT_THAT(topk({2, 1}, 0), ElementsAre());
}

TEST(SelectTopk, NanIsSmallerThanEverything) {
  EXPECT_THAT(topk({kNan, 1, 2}, 2), ElementsAre(1, 2));
  EXPECT_THAT(topk({kNan, -kInfinity}, 1), ElementsAre(1));
  EXPECT_THAT(topk({kNan, -1, kNan}, 2), ElementsAre(0, 1));
}

RC_GTEST_PROP(SelectTopk, EqualsAStableSort, ()) {
  // Few distinct scores: many ties.
  const auto levels =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-3, 4)));
  std::vector<float> scores;
  for (const int level : levels) {
    scores.push_back(level == -3 ? kNan : level == -2 ? -kInfinity : static_cast<float>(level));
  }
  const auto k = *rc::gen::inRange<std::size_t>(0, scores.size() + 1);
  RC_ASSERT(topk(scores, k) == topk_by_sort(scores, k));
}

TEST(RouterScore, IsCloseToDoubleAndDoesNotUnderflow) {
  for (float x = -85; x < 60; x += 0.0937f) {
    const double exact = std::sqrt(std::log1p(std::exp(static_cast<double>(x))));
    EXPECT_NEAR(router_score(x), exact, 2 * 0x1p-24 * exact + (x > 20 ? 1e-9 : 0)) << x;
  }
  EXPECT_NEAR(router_score(-20), 4.5399929e-5, 1e-11);
  EXPECT_GT(router_score(-100), 0);
  EXPECT_EQ(router_score(400), 20.0f);
  EXPECT_TRUE(std::isnan(router_score(kNan)));
}

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Routed route_with(const std::vector<float>& logits, std::size_t k, const float* bias = nullptr,
                  const std::int32_t* fixed = nullptr, float scaling = 1.5f) {
  Routed out{std::vector<std::int32_t>(k), std::vector<float>(k)};
  // The row that counts is the second; the first has other values and, in a hash layer, another id.
  std::vector<float> rows(logits.rbegin(), logits.rend());
  rows.insert(rows.end(), logits.begin(), logits.end());
  std::vector<std::int32_t> chosen(2 * k), by_id(3 * k);
  std::vector<float> weights(2 * k);
  if (fixed != nullptr) std::copy_n(fixed, k, by_id.begin() + static_cast<std::ptrdiff_t>(2 * k));
  const std::int32_t ids[] = {1, 2};
  ThreadPool pool(2);
  route(pool, {.logits = rows.data(),
               .rows = 2,
               .experts = logits.size(),
               .bias = bias,
               .by_id = fixed == nullptr ? nullptr : by_id.data(),
               .ids = ids,
               .k = k,
               .scaling = scaling,
               .chosen = chosen.data(),
               .weights = weights.data()});
  std::copy_n(chosen.begin() + static_cast<std::ptrdiff_t>(k), k, out.experts.begin());
  std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(k), k, out.weights.begin());
  return out;
}

TEST(Route, WeightsAreTheUnbiasedSharesTimesTheFactor) {
  test::Random random(61);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> logits = random.normals(256, 4), bias = random.normals(256, 2);
    const Routed routed = route_with(logits, 6, bias.data());
    std::vector<float> biased;
    for (std::size_t e = 0; e < 256; ++e) biased.push_back(router_score(logits[e]) + bias[e]);
    EXPECT_EQ(routed.experts, topk_by_sort(biased, 6));
    double total = 0;
    const auto score = [&](std::size_t i) {
      return double{router_score(logits[static_cast<std::size_t>(routed.experts[i])])};
    };
    for (std::size_t i = 0; i < 6; ++i) total += score(i);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(routed.weights[i], 1.5 * score(i) / total, 1e-6);
    }
    EXPECT_NEAR(std::accumulate(routed.weights.begin(), routed.weights.end(), 0.0), 1.5, 1e-6);
  }
}

TEST(Route, BiasDecidesTheChoiceButNotTheWeights) {
  const std::vector<float> logits = {0, 0, 0, 0}, bias = {0, 5, 0, 5};
  const Routed routed = route_with(logits, 2, bias.data());
  EXPECT_THAT(routed.experts, ElementsAre(1, 3));
  EXPECT_THAT(routed.weights, ElementsAre(0.75f, 0.75f));
  EXPECT_THAT(route_with(logits, 2).experts, ElementsAre(0, 1));
}

TEST(Route, FixedExpertsAreSortedAndWeighedByTheirScores) {
  const std::vector<float> logits = {30, 0, 1, 30, 2}, bias = {9, 0, 0, 9, 0};
  const std::int32_t fixed[] = {4, 1, 2};
  const Routed routed = route_with(logits, 3, bias.data(), fixed, 1.0f);
  EXPECT_THAT(routed.experts, ElementsAre(1, 2, 4));
  const double total = double{router_score(0)} + router_score(1) + router_score(2);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(routed.weights[i], router_score(static_cast<float>(i)) / total, 1e-6);
  }
}

TEST(Route, VeryLowLogitsStillShareTheFactor) {
  const Routed routed = route_with({-20, -20, -20, -25}, 2);
  EXPECT_THAT(routed.experts, ElementsAre(0, 1));
  EXPECT_THAT(routed.weights, ElementsAre(0.75f, 0.75f));
}

}  // namespace
}  // namespace cupel
