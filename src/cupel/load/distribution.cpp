#include "cupel/load/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace cupel {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double percentile_of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return kNone;
  const double at = static_cast<double>(sorted.size() - 1) * percent / 100;
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, percent);
}

Distribution distribution(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  const double mean =
      sorted.empty() ? kNone : std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  return {.count = sorted.size(),
          .mean = mean,
          .median = percentile_of_sorted(sorted, 50),
          .deviation = sorted.empty() ? kNone : std::sqrt(squares / n),
          .p95 = percentile_of_sorted(sorted, 95),
          .p99 = percentile_of_sorted(sorted, 99),
          .largest = percentile_of_sorted(sorted, 100)};
}

}  // namespace cupel
