#include "cupel/assay/interval.h"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>

namespace cupel {

double normal_cdf(double z) {
  return boost::math::cdf(boost::math::normal(), z);
}

double normal_quantile(double p) {
  return boost::math::quantile(boost::math::normal(), p);
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

}  // namespace cupel
