#include "cupel/engine/sampler.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <boost/math/distributions/chi_squared.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Sampler all_of(std::size_t vocab) {
  return Sampler(std::vector<bool>(vocab, true));
}

// The chance of a sum of squares at least as large if `counts` were drawn with `probabilities`.
double chi_square_p(const std::vector<int>& counts, const std::vector<double>& probabilities) {
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const boost::math::chi_squared distribution(static_cast<double>(counts.size() - 1));
  return boost::math::cdf(boost::math::complement(distribution, sum));
}

TEST(Sampler, GreedyTakesTheLargestAndTiesGoToTheLowestId) {
  const Sampler sampler = all_of(4);
  const auto greedy = [&](const std::vector<float>& logits) {
    return sampler.sample(logits, {.seed = 7}, 3);
  };
  EXPECT_EQ(greedy({1, -2, 4.5F, 4}).id, 2);
  EXPECT_EQ(greedy({1, -2, 4.5F, 4}).margin, 0.5F);
  EXPECT_EQ(greedy({1, 3, 3, 3}).id, 1);
  EXPECT_EQ(greedy({1, 3, 3, 3}).margin, 0);
  EXPECT_EQ(greedy({9, 3, 2, 1}).margin, 6);  // the second comes after the first
  EXPECT_EQ(greedy({-3, -2, -9, -8}).id, 1);
  EXPECT_EQ(greedy({-kInfinity, -kInfinity, 1, -kInfinity}).id, 2);
}

TEST(Sampler, RowsWithoutATokenDoNotCount) {
  const Sampler sampler({false, true, false, true});
  const std::vector<float> logits = {90, 1, kNan, 3};
  EXPECT_EQ(sampler.sample(logits, {}, 0).id, 3);
  EXPECT_EQ(sampler.sample(logits, {}, 0).margin, 2);
  for (std::uint64_t step = 0; step < 1000; ++step) {
    EXPECT_EQ(sampler.sample(logits, {.temperature = 1e6F, .seed = 11}, step).id % 2, 1);
  }
}

TEST(Sampler, NanOfATokenIsAnError) {
  const Sampler sampler = all_of(3);
  for (const float temperature : {0.0F, 1.0F}) {
    for (std::size_t at = 0; at < 3; ++at) {
      std::vector<float> logits = {1, 2, 3};
      logits[at] = kNan;
      EXPECT_THROW(sampler.sample(logits, {.temperature = temperature}, 0), InfrastructureError);
    }
  }
}

// Over seeds and over steps. The last two rows have no token; a share of them would show.
TEST(Sampler, FrequenciesMatchTheSoftmax) {
  const std::vector<float> existing = {1.5F, -0.5F, 0, 2, 1.25F, -1, 0.5F, 2};
  std::vector<float> logits = existing;
  logits.insert(logits.end(), {2, 0});
  std::vector<bool> allowed(existing.size(), true);
  allowed.resize(logits.size(), false);
  const Sampler sampler(allowed);
  constexpr int kDraws = 40000;
  for (const float temperature : {0.5F, 1.0F, 3.0F}) {
    std::vector<double> probabilities;
    for (const float x : existing) {
      probabilities.push_back(std::exp(static_cast<double>(x) / temperature));
    }
    const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
    for (double& p : probabilities) p /= total;
    std::vector<int> over_seeds(existing.size()), over_steps(existing.size());
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      ++over_seeds.at(static_cast<std::size_t>(
          sampler.sample(logits, {.temperature = temperature, .seed = i}, 0).id));
      ++over_steps.at(static_cast<std::size_t>(
          sampler.sample(logits, {.temperature = temperature, .seed = 5}, i).id));
    }
    EXPECT_GT(chi_square_p(over_seeds, probabilities), 1e-3) << temperature;
    EXPECT_GT(chi_square_p(over_steps, probabilities), 1e-3) << temperature;
  }
}

TEST(Sampler, SampledMarginIsThatOfTheLogits) {
  const Sampler sampler = all_of(3);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(
        sampler.sample(std::vector<float>{1, 4, 2}, {.temperature = 5, .seed = seed}, 0).margin, 2);
  }
}

// 32-bit weights of exp(-90) and less are 0 beside the largest: it is taken, not the last id.
TEST(Sampler, AVanishingTemperatureIsGreedy) {
  const Sampler sampler = all_of(4);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(
        sampler.sample(std::vector<float>{1, 5, 3, 2}, {.temperature = 1e-3F, .seed = seed}, 0).id,
        1);
    EXPECT_EQ(
        sampler.sample(std::vector<float>{1, 5, 3, 2}, {.temperature = 1e-44F, .seed = seed}, 0).id,
        1);
  }
}

TEST(Uniform, NeighbouringSeedsAndStepsAreIndependent) {
  constexpr int kCells = 10;
  std::vector<int> over_seeds(kCells * kCells), over_steps(kCells * kCells);
  std::vector<int> across(kCells * kCells);  // a seed's step against the next seed's step before
  const auto cell = [](double u) { return static_cast<std::size_t>(u * kCells); };
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double u = uniform(i, 3);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++over_seeds.at(cell(u) * kCells + cell(uniform(i + 1, 3)));
    ++over_steps.at(cell(uniform(9, i)) * kCells + cell(uniform(9, i + 1)));
    ++across.at(cell(uniform(i, 4)) * kCells + cell(uniform(i + 1, 3)));
  }
  const std::vector<double> flat(kCells * kCells, 1.0 / (kCells * kCells));
  EXPECT_GT(chi_square_p(over_seeds, flat), 1e-3);
  EXPECT_GT(chi_square_p(over_steps, flat), 1e-3);
  EXPECT_GT(chi_square_p(across, flat), 1e-3);
}

}  // namespace
}  // namespace cupel
