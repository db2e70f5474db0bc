// Generation at a temperature above 0.
#include <algorithm>
#include <cmath>
#include <set>

#include "engine/engine_support.h"
#include <boost/math/distributions/chi_squared.hpp>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::generate;
using test::generate_alone;
using test::text_ids;

class SampledGeneration : public testing::Test {
 protected:
  Engine engine_{test::engine_options(BackendKind::kPacked)};
};

TEST_F(SampledGeneration, TheSeedAloneDecides) {
  const GenerationRequest request = {.prompt_ids = text_ids(0, 60),
                                     .max_new_tokens = 20,
                                     .sampling = {.temperature = 1, .seed = 5}};
  const Generation alone = generate_alone(engine_, request);
  ASSERT_EQ(alone.output_ids.size(), 20U);
  test::expect_same(generate_alone(engine_, request), alone);

  std::vector<GenerationRequest> requests(6, request);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].sampling.seed = 3 + i;
  requests.push_back(
      {.prompt_ids = text_ids(7, 90), .max_new_tokens = 9, .sampling = {.temperature = 1}});
  const auto together = generate(engine_, requests, 4);
  test::expect_same(together[2], alone);
  std::set<std::vector<std::int32_t>> different;
  for (std::size_t i = 0; i < 6; ++i) different.insert(together[i].output_ids);
  EXPECT_EQ(different.size(), 6U);
}

// At such a temperature every row of the vocabulary is about as likely: 1 in 6 has no token.
TEST_F(SampledGeneration, RowsWithoutATokenAreNeverSampled) {
  std::vector<GenerationRequest> requests(
      8, {.prompt_ids = text_ids(0, 20), .max_new_tokens = 50, .sampling = {.temperature = 1000}});
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].sampling.seed = i;
  std::set<std::int32_t> seen;
  for (const Generation& g : generate(engine_, requests, 0)) {
    seen.insert(g.output_ids.begin(), g.output_ids.end());
  }
  EXPECT_GT(seen.size(), 200U);
  EXPECT_LT(*seen.rbegin(), 639);
  for (const std::int32_t id : seen) EXPECT_TRUE(engine_.tokenizer().has_token(id)) << id;
}

// First tokens over many seeds against softmax(logits / temperature): tokens likely enough for the
// test each on their own, the others as one.
TEST_F(SampledGeneration, FirstTokensFollowTheSoftmax) {
  constexpr int kDraws = 4000;
  const auto prompt = text_ids(0, 24);
  const float temperature = 2;
  const auto logits = engine_.logits(prompt, {});
  std::vector<double> p(logits.size());
  const float largest = *std::ranges::max_element(logits);
  double total = 0;
  for (std::size_t id = 0; id < p.size(); ++id) {
    if (!engine_.tokenizer().has_token(static_cast<std::int32_t>(id))) continue;
    p[id] = std::exp(static_cast<double>(logits[id] - largest) / temperature);
    total += p[id];
  }
  std::vector<GenerationRequest> requests(
      kDraws,
      {.prompt_ids = prompt, .max_new_tokens = 1, .sampling = {.temperature = temperature}});
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].sampling.seed = i;
  std::vector<double> counts(p.size());
  for (const Generation& g : generate(engine_, requests, 0)) {
    counts.at(static_cast<std::size_t>(g.output_ids.at(0))) += 1;
  }
  double sum = 0, rest_count = 0, rest_expected = 0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    sum += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t id = 0; id < p.size(); ++id) {
    const double expected = kDraws * p[id] / total;
    if (expected >= 10) {
      add(counts[id], expected);
    } else {
      rest_count += counts[id];
      rest_expected += expected;
    }
  }
  add(rest_count, rest_expected);
  ASSERT_GE(cells, 8);
  const boost::math::chi_squared distribution(cells - 1);
  EXPECT_GT(boost::math::cdf(boost::math::complement(distribution, sum)), 1e-3)
      << sum << " in " << cells << " cells";
}

}  // namespace
}  // namespace cupel
