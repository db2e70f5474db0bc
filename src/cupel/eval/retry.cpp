#include "cupel/eval/retry.h"

#include <algorithm>
#include <cmath>

namespace cupel {

double Backoff::wait(int retry, std::optional<double> asked_seconds) {
  const double plain = std::min(kLongestWait, first_seconds_ * std::exp2(retry - 1));
  const double jittered = plain * std::uniform_real_distribution<double>(0.5, 1.5)(random_);
  return std::max(jittered, std::min(kLongestAsked, asked_seconds.value_or(0)));
}

}  // namespace cupel
