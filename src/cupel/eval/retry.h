// When a failed request is tried again.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

namespace cupel {

// Exponential back-off with jitter, so that a thousand requests that failed together do not come
// back together.
class Backoff {
 public:
  Backoff(double first_seconds, std::uint64_t seed)
      : first_seconds_(first_seconds), random_(seed) {}

  // Seconds before try `retry` (1 = the first further one): first * 2^(retry - 1), at most
  // kLongestWait, times a factor from 0.5 to 1.5; not less than what the server asked for, as far
  // as that is within kLongestAsked.
  double wait(int retry, std::optional<double> asked_seconds);

  static constexpr double kLongestWait = 30;
  static constexpr double kLongestAsked = 120;

 private:
  double first_seconds_;
  std::mt19937_64 random_;
};

}  // namespace cupel
