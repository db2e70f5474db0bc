// When the requests of an open loop are due.
#pragma once

#include <cstdint>
#include <vector>

namespace cupel {

// Seconds from the beginning of the run, ascending; the first is 0, as in SGLang. `rate`, in
// requests a second, is above 0: the gaps are exponential with mean 1 / rate, a Poisson process;
// at infinity all are 0. A function of its arguments alone.
std::vector<double> arrival_times(int count, double rate, std::uint64_t seed);

}  // namespace cupel
