#include "cupel/assay/interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace cupel {

double normal_cdf(double z) {
  return boost::math::cdf(boost::math::normal(), z);
}

double normal_quantile(double p) {
  return boost::math::quantile(boost::math::normal(), p);
}

double students_t_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::students_t(degrees), p);
}

Interval wilson(std::int64_t successes, std::int64_t trials, double level) {
  const double z = normal_quantile(0.5 + level / 2);
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double centre = p + z * z / (2 * n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

Interval clopper_pearson(std::int64_t successes, std::int64_t trials, double level) {
  using Binomial = boost::math::binomial_distribution<double>;
  const auto k = static_cast<double>(successes);
  const auto n = static_cast<double>(trials);
  const double tail = (1 - level) / 2;
  return {Binomial::find_lower_bound_on_p(n, k, tail), Binomial::find_upper_bound_on_p(n, k, tail)};
}

Interval mean_interval(std::span<const double> values, double level) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (n - 1) / n);
  const double half = students_t_quantile(0.5 + level / 2, n - 1) * error;
  return {mean - half, mean + half};
}

}  // namespace cupel
