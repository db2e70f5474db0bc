// What a list of times is summed up as.
#pragma once

#include <cstddef>
#include <vector>

namespace cupel {

// The value below which `percent` of them lie: at position (n - 1) * percent / 100 of the sorted
// values, linear between two of them (numpy's default, which SGLang uses). NaN for no values.
double percentile(std::vector<double> values, double percent);

// Of no values all are NaN.
struct Distribution {
  std::size_t count = 0;
  double mean = 0;
  double median = 0;
  double deviation = 0;  // standard deviation of these values (divided by n), as SGLang's
  double p95 = 0;
  double p99 = 0;
  double largest = 0;
};

Distribution distribution(const std::vector<double>& values);

}  // namespace cupel
