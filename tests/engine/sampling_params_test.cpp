// What penalties, bias and truncation do to a choice, and the log-probabilities that go with it.
#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/engine/sampler.h"

namespace cupel {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

const Sampler kSampler(std::vector<bool>{true, true, true, true, false, true});
// Probabilities 0.5, 0.25, 0.125, 0.0625, (none), 0.0625 at temperature 1.
const std::vector<float> kLogits = {std::log(8.0F), std::log(4.0F), std::log(2.0F),
                                    0.0F,           9.0F,           0.0F};

// The tokens that come at all.
std::set<std::int32_t> support(SamplingParams params, const SampleRules& rules = {}) {
  if (params.temperature == 0) params.temperature = 1;
  std::set<std::int32_t> seen;
  for (std::uint64_t step = 0; step < 3000; ++step) {
    seen.insert(kSampler.sample(kLogits, params, step, rules).id);
  }
  return seen;
}

TEST(SamplingParams, TopKKeepsTheLargestAndTiesGoToTheLowestId) {
  EXPECT_THAT(support({}), ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(support({.top_k = 1}), ElementsAre(0));
  EXPECT_THAT(support({.top_k = 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(support({.top_k = 50}), ElementsAre(0, 1, 2, 3, 5));
}

TEST(SamplingParams, TopPKeepsTheFewestThatReachIt) {
  EXPECT_THAT(support({.top_p = 0.4F}), ElementsAre(0));
  EXPECT_THAT(support({.top_p = 0.5F}), ElementsAre(0));
  EXPECT_THAT(support({.top_p = 0.51F}), ElementsAre(0, 1));
  EXPECT_THAT(support({.top_p = 0.9F}), ElementsAre(0, 1, 2, 3));
  // Of what top_k left: 0.5 and 0.25 are 2/3 and 1/3 there.
  EXPECT_THAT(support({.top_k = 2, .top_p = 0.6F}), ElementsAre(0));
}

TEST(SamplingParams, MinPIsRelativeToTheLargest) {
  EXPECT_THAT(support({.min_p = 0.2F}), ElementsAre(0, 1, 2));
  EXPECT_THAT(support({.min_p = 1}), ElementsAre(0));
}

TEST(SamplingParams, FrequenciesOfWhatIsLeftAreThoseOfTheSoftmax) {
  int first = 0;
  constexpr int kDraws = 20000;
  for (std::uint64_t step = 0; step < kDraws; ++step) {
    first += kSampler.sample(kLogits, {.temperature = 1, .top_k = 2}, step).id == 0 ? 1 : 0;
  }
  EXPECT_NEAR(first, kDraws * 2.0 / 3, 5 * std::sqrt(kDraws * 2.0 / 9));
}

TEST(SamplingParams, PenaltiesAndBiasChangeTheGreedyChoice) {
  const auto greedy = [&](SamplingParams params, const SampleRules& rules) {
    return kSampler.sample(kLogits, params, 0, rules).id;
  };
  const TokenHistory once{.prompt = {{1, 1}}, .output = {{0, 1}}};
  const TokenHistory often{.prompt = {}, .output = {{0, 3}}};
  // log 8 = 2.08, log 4 = 1.39: a presence of 0.6 is not enough, 0.8 is.
  EXPECT_EQ(greedy({.presence_penalty = 0.6F}, {.history = &once}), 0);
  EXPECT_EQ(greedy({.presence_penalty = 0.8F}, {.history = &once}), 1);
  EXPECT_EQ(greedy({.presence_penalty = 0.6F}, {.history = &often}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.6F}, {.history = &often}), 1);
  // Prompt and output tokens are divided by the repetition penalty: 1.04 and 0.69 at 2, so 0 stays;
  // at 4, token 2 (0.69) passes both.
  EXPECT_EQ(greedy({.repetition_penalty = 2}, {.history = &once}), 0);
  EXPECT_EQ(greedy({.repetition_penalty = 4}, {.history = &once}), 2);
  const std::map<std::int32_t, float> bias = {{3, 5.0F}, {0, -1.0F}};
  EXPECT_EQ(greedy({}, {.bias = &bias}), 3);
  const std::vector<std::int32_t> banned = {0, 1};
  EXPECT_EQ(greedy({}, {.banned = banned}), 2);
  EXPECT_EQ(support({}, {.banned = banned}).count(0), 0U);
}

TEST(SamplingParams, NegativeLogitsAreMultipliedByTheRepetitionPenalty) {
  const Sampler sampler(std::vector<bool>{true, true});
  const TokenHistory history{.prompt = {{0, 1}}, .output = {}};
  const std::vector<float> logits = {-1, -1.5F};
  EXPECT_EQ(sampler.sample(logits, {.repetition_penalty = 1.4F}, 0, {.history = &history}).id, 0);
  EXPECT_EQ(sampler.sample(logits, {.repetition_penalty = 1.6F}, 0, {.history = &history}).id, 1);
}

TEST(SamplingParams, TheMarginIsTakenAfterPenaltiesAndBias) {
  const std::map<std::int32_t, float> bias = {{0, -3.0F}};
  EXPECT_FLOAT_EQ(kSampler.sample(kLogits, {}, 0, {.bias = &bias}).margin, std::log(2.0F));
}

TEST(SamplingParams, OnlyAllowedTokensCome) {
  // The tokens 1, 3, 4 (which does not exist) and one beyond the vocabulary.
  const std::vector<std::uint64_t> allowed = {0b11010, 1};
  EXPECT_THAT(support({}, {.allowed = allowed}), ElementsAre(1, 3));
  EXPECT_THAT(support({.top_k = 1}, {.allowed = allowed}), ElementsAre(1));
  const SampledToken token = kSampler.sample(kLogits, {}, 0, {.allowed = allowed});
  EXPECT_EQ(token.id, 1);
  EXPECT_EQ(token.margin, kLogits[1] - kLogits[3]);
  // After the bias, which cannot bring in others.
  const std::map<std::int32_t, float> bias = {{0, 50.0F}, {3, 9.0F}};
  EXPECT_EQ(kSampler.sample(kLogits, {}, 0, {.bias = &bias, .allowed = allowed}).id, 3);
  const std::vector<std::uint64_t> one = {0b100}, none = {0b10000};
  EXPECT_EQ(kSampler.sample(kLogits, {}, 0, {.allowed = one}).margin, INFINITY);
  EXPECT_THROW(kSampler.sample(kLogits, {}, 0, {.allowed = none}), InfrastructureError);
}

TEST(SamplingParams, LogprobsAreTheModelsOwn) {
  const TokenLogprobs l = kSampler.logprobs(kLogits, 5, 3);
  EXPECT_EQ(l.id, 5);
  EXPECT_THAT(l.logprob, FloatNear(std::log(0.0625F), 1e-6F));
  ASSERT_EQ(l.top.size(), 3U);
  EXPECT_EQ(l.top[0].first, 0);
  EXPECT_EQ(l.top[2].first, 2);
  EXPECT_THAT(l.top[1].second, FloatNear(std::log(0.25F), 1e-6F));
  EXPECT_EQ(kSampler.logprobs(kLogits, 0, 99).top.size(), 5U);
  EXPECT_EQ(kSampler.logprobs(kLogits, 0, 5).top[3].first, 3);  // ties to the lowest id
  EXPECT_TRUE(kSampler.logprobs(kLogits, 0, 0).top.empty());
}

}  // namespace
}  // namespace cupel
