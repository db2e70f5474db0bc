#include "cupel/cli/progress.h"

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace cupel {

std::function<void(const Progress&)> progress_printer(const std::string& label) {
  using Clock = std::chrono::steady_clock;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto pause = terminal ? std::chrono::milliseconds(200) : std::chrono::seconds(15);
  // Shared: std::function copies its target.
  const auto last = std::make_shared<Clock::time_point>(Clock::now());
  return [=](const Progress& progress) {
    const bool end = progress.done == progress.total;
    const auto now = Clock::now();
    if (!end && now - *last < pause) return;
    *last = now;
    // The blanks cover the rest of a longer line before.
    fmt::print(stderr, "{}{}: {}{}", terminal ? "\r" : "", label, progress_line(progress),
               terminal ? "      " : "\n");
    if (terminal && end) fmt::print(stderr, "\n");
    std::fflush(stderr);
  };
}

}  // namespace cupel
