#include "cupel/load/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(Arrivals, AreAPoissonProcess) {
  constexpr int kCount = 20001;
  constexpr double kRate = 40;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const std::vector<double> times = arrival_times(kCount, kRate, seed);
    ASSERT_EQ(times.size(), static_cast<std::size_t>(kCount));
    EXPECT_EQ(times.front(), 0);
    std::vector<double> gaps;
    for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
    std::sort(gaps.begin(), gaps.end());
    EXPECT_GE(gaps.front(), 0);
    const auto n = static_cast<double>(gaps.size());
    // Mean and standard deviation of the gaps are both 1 / rate; five standard errors.
    EXPECT_NEAR(times.back() / n * kRate, 1, 5 / std::sqrt(n));
    // Kolmogorov's distance to the exponential distribution; 2.3 / sqrt(n) is its 5e-5 quantile.
    double distance = 0;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const double share = -std::expm1(-gaps[i] * kRate);
      distance = std::max({distance, std::abs(share - static_cast<double>(i) / n),
                           std::abs(share - static_cast<double>(i + 1) / n)});
    }
    EXPECT_LT(distance, 2.3 / std::sqrt(n));
  }
}

TEST(Arrivals, DependOnTheSeedAlone) {
  EXPECT_EQ(arrival_times(100, 3, 7), arrival_times(100, 3, 7));
  EXPECT_NE(arrival_times(100, 3, 7), arrival_times(100, 3, 8));
  // A longer run begins as the shorter one.
  const std::vector<double> longer = arrival_times(200, 3, 7);
  EXPECT_EQ(std::vector(longer.begin(), longer.begin() + 100), arrival_times(100, 3, 7));
}

TEST(Arrivals, AtAnInfiniteRateAllAreDueAtOnce) {
  const double rate = std::numeric_limits<double>::infinity();
  EXPECT_EQ(arrival_times(5, rate, 1), std::vector<double>(5, 0));
  EXPECT_TRUE(arrival_times(0, 1, 1).empty());
}

}  // namespace
}  // namespace cupel
