#include "cupel/load/distribution.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/load/repeated.h"

namespace cupel {
namespace {

// Expected values are numpy.percentile's.
TEST(Distribution, PercentilesAreLinearBetweenTwoValues) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 25), 1.75);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 99), 3.97);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile({7}, 99), 7);
  EXPECT_TRUE(std::isnan(percentile({}, 50)));
}

TEST(Distribution, SumsUp) {
  const Distribution d = distribution({8, 2, 4, 4, 5, 5, 7, 9, 1, 10});
  EXPECT_EQ(d.count, 10U);
  EXPECT_DOUBLE_EQ(d.mean, 5.5);
  EXPECT_DOUBLE_EQ(d.median, 5);
  // Squares of the differences sum to 78.5.
  EXPECT_DOUBLE_EQ(d.deviation, std::sqrt(7.85));
  EXPECT_DOUBLE_EQ(d.p95, 9.55);
  EXPECT_DOUBLE_EQ(d.p99, 9.91);
  EXPECT_DOUBLE_EQ(d.largest, 10);
  const Distribution none = distribution({});
  EXPECT_EQ(none.count, 0U);
  EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.median) && std::isnan(none.deviation) &&
              std::isnan(none.largest));
}

TEST(Repeated, MeanAndStudentsInterval) {
  // t(0.975, 2) = 4.302653, the standard error 1 / sqrt(3).
  const RepeatedFigure three = repeated_figure({1, 2, NAN, 3});
  EXPECT_EQ(three.repeats, 3);
  EXPECT_DOUBLE_EQ(three.mean, 2);
  ASSERT_TRUE(three.interval95);
  EXPECT_NEAR(three.interval95->high - 2, 4.302653 / std::sqrt(3.0), 1e-6);
  EXPECT_EQ(show(three, 2), "2.00 +- 2.48");
  EXPECT_EQ(show(repeated_figure({1.5}), 1), "1.5");
  EXPECT_EQ(show(repeated_figure({NAN}), 1), "-");
}

TEST(Repeated, SummaryNamesEachFigure) {
  const std::vector<NamedFigures> repeats = {{{"a", 1}, {"b", NAN}}, {{"a", 3}, {"b", 5}}};
  const auto summary = summary_json(repeats);
  EXPECT_EQ(summary["a"]["mean"], 2.0);
  EXPECT_EQ(summary["a"]["repeats"], 2);
  // t(0.975, 1) = 12.7062, the standard error 1.
  EXPECT_NEAR(summary["a"]["interval95"][0].get<double>(), 2 - 12.7062, 1e-3);
  EXPECT_EQ(summary["b"]["mean"], 5.0);
  EXPECT_TRUE(summary["b"]["interval95"].is_null());
  EXPECT_TRUE(summary_json({}).empty());
}

}  // namespace
}  // namespace cupel
