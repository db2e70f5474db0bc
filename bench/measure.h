// Timing by the median of repeats. Two things that are compared are timed alternately, so that a
// slow spell of the machine meets both.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace cupel::bench {

double seconds(const std::function<void()>& run);
double median(std::span<const double> values);

// The median seconds of each, after one run of each that does not count. Repeats > 0.
std::vector<double> alternate(std::span<const std::function<void()>> runs, int repeats);

}  // namespace cupel::bench
