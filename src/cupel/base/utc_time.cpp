#include "cupel/base/utc_time.h"

#include <chrono>

#include <fmt/chrono.h>

namespace cupel {

std::string utc_now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

}  // namespace cupel
