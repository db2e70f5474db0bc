#include "cupel/formats/error_measures.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace cupel {
namespace {

using Floats = std::vector<float>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ErrorMeasures, KnownValues) {
  const Floats reference = {3.0f, 0.0f, -4.0f};
  const Floats actual = {3.0f, 0.5f, -4.0f};
  EXPECT_DOUBLE_EQ(relative_frobenius_error(actual, reference), 0.1);
  EXPECT_DOUBLE_EQ(max_abs_error(actual, reference), 0.5);
  EXPECT_DOUBLE_EQ(snr_db(actual, reference), 20.0);
  EXPECT_DOUBLE_EQ(cosine_similarity(actual, reference), 25.0 / (std::sqrt(25.25) * 5.0));
  EXPECT_DOUBLE_EQ(cosine_similarity(Floats{1, 0}, Floats{0, 1}), 0.0);
  EXPECT_DOUBLE_EQ(cosine_similarity(Floats{-2, -2}, Floats{1, 1}), -1.0);
}

// A float sum would lose the small terms or overflow, a plain double sum drifts beyond 1e-14.
TEST(ErrorMeasures, SumsAreCompensated) {
  Floats reference(1 << 20, 1e-4f);
  reference[0] = 1.0f;
  Floats actual = reference;
  for (std::size_t i = 1; i < actual.size(); ++i) actual[i] = 0.0f;
  const double rest = (static_cast<double>(1 << 20) - 1) * 1e-4f * 1e-4f;
  EXPECT_NEAR(relative_frobenius_error(actual, reference), std::sqrt(rest / (1 + rest)), 1e-14);
  EXPECT_NEAR(cosine_similarity(actual, reference), 1 / std::sqrt(1 + rest), 1e-14);
  EXPECT_DOUBLE_EQ(relative_frobenius_error(Floats{3e38f}, Floats{-3e38f}), 2.0);
  EXPECT_DOUBLE_EQ(cosine_similarity(Floats{1e-45f}, Floats{3e38f}), 1.0);
}

TEST(ErrorMeasures, EqualAndZeroArrays) {
  const Floats zero = {0.0f, -0.0f};
  const Floats one = {1.0f, 0.0f};
  EXPECT_EQ(relative_frobenius_error(one, one), 0.0);
  EXPECT_EQ(relative_frobenius_error(zero, zero), 0.0);
  EXPECT_EQ(relative_frobenius_error(one, zero), kInfinity);
  EXPECT_EQ(relative_frobenius_error(zero, one), 1.0);
  EXPECT_EQ(max_abs_error({}, {}), 0.0);
  EXPECT_EQ(snr_db(one, one), kInfinity);
  EXPECT_EQ(snr_db(zero, one), 0.0);
  EXPECT_EQ(snr_db(one, zero), -kInfinity);
  EXPECT_TRUE(std::isnan(cosine_similarity(one, zero)));
}

TEST(ErrorMeasures, NanNeverReadsAsASmallError) {
  const auto inf = std::numeric_limits<float>::infinity();
  const Floats reference = {1.0f, 2.0f, 3.0f};
  for (const Floats& actual : {Floats{kNan, 2, 3}, Floats{1, 2, kNan}}) {
    EXPECT_TRUE(std::isnan(relative_frobenius_error(actual, reference)));
    EXPECT_TRUE(std::isnan(relative_frobenius_error(reference, actual)));
    EXPECT_TRUE(std::isnan(max_abs_error(actual, reference)));
    EXPECT_TRUE(std::isnan(snr_db(actual, reference)));
    EXPECT_TRUE(std::isnan(cosine_similarity(actual, reference)));
  }
  const Floats infinite = {1.0f, inf};
  EXPECT_TRUE(std::isnan(relative_frobenius_error(infinite, infinite)));
  EXPECT_TRUE(std::isnan(max_abs_error(infinite, infinite)));
  EXPECT_EQ(max_abs_error(infinite, Floats{1, 2}), kInfinity);
  EXPECT_EQ(relative_frobenius_error(infinite, Floats{1, 2}), kInfinity);
  EXPECT_EQ(snr_db(infinite, Floats{1, 2}), -kInfinity);
}

TEST(ErrorMeasures, RefuseArraysOfDifferentLength) {
  EXPECT_THROW(relative_frobenius_error(Floats(2), Floats(3)), std::invalid_argument);
  EXPECT_THROW(max_abs_error(Floats(2), Floats(3)), std::invalid_argument);
  EXPECT_THROW(snr_db(Floats(2), Floats(3)), std::invalid_argument);
  EXPECT_THROW(cosine_similarity(Floats(2), Floats(3)), std::invalid_argument);
}

}  // namespace
}  // namespace cupel
