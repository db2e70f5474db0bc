#include "cupel/load/arrivals.h"

#include <cmath>

#include "cupel/engine/sampler.h"

namespace cupel {

std::vector<double> arrival_times(int count, double rate, std::uint64_t seed) {
  std::vector<double> times;
  double at = 0;
  for (int i = 0; i < count; ++i) {
    times.push_back(at);
    // A rate of infinity gives gaps of 0.
    at += -std::log1p(-uniform(seed, static_cast<std::uint64_t>(i))) / rate;
  }
  return times;
}

}  // namespace cupel
