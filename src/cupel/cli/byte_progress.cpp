#include "cupel/cli/byte_progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace cupel {

std::function<void(std::uint64_t, std::uint64_t)> byte_progress(const std::string& label) {
  using Clock = std::chrono::steady_clock;
  struct State {
    Clock::time_point start = Clock::now();
    Clock::time_point last = start;
  };
  const auto state = std::make_shared<State>();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto pause = terminal ? std::chrono::milliseconds(200) : std::chrono::seconds(15);
  return [=](std::uint64_t done, std::uint64_t total) {
    const auto now = Clock::now();
    if (now - state->last < pause && !(terminal && done == total)) return;
    state->last = now;
    const double seconds = std::chrono::duration<double>(now - state->start).count();
    const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
    fmt::print(stderr, "{}{}: {:.2f} / {:.2f} GB, {:.2f} GB/s, {:.0f} s left{}",
               terminal ? "\r" : "", label, static_cast<double>(done) * 1e-9,
               static_cast<double>(total) * 1e-9, rate * 1e-9,
               static_cast<double>(total - done) / std::max(rate, 1.0), terminal ? "      " : "\n");
    if (terminal && done == total) fmt::print(stderr, "\n");
    std::fflush(stderr);
  };
}

void print_throughput(const std::string& label, std::uint64_t bytes, double seconds,
                      const PlainRead& plain) {
  const double rate = static_cast<double>(bytes) / std::max(seconds, 1e-9);
  const double read = static_cast<double>(plain.bytes) / std::max(plain.seconds, 1e-9);
  fmt::print(stderr, "{}: {:.2f} GB/s; a plain read of the same files {:.2f} GB/s; ratio {:.2f}\n",
             label, rate * 1e-9, read * 1e-9, rate / std::max(read, 1.0));
}

}  // namespace cupel
