#include "measure.h"

#include <algorithm>
#include <chrono>

namespace cupel::bench {

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::vector<double> alternate(std::span<const std::function<void()>> runs, int repeats) {
  for (const auto& run : runs) run();
  std::vector<std::vector<double>> times(runs.size());
  for (int i = 0; i < repeats; ++i) {
    for (std::size_t j = 0; j < runs.size(); ++j) times[j].push_back(seconds(runs[j]));
  }
  std::vector<double> medians;
  for (const auto& t : times) medians.push_back(median(t));
  return medians;
}

}  // namespace cupel::bench
