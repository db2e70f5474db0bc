// The evaluation that users run most, end to end, against sgemm.
#include <cstdlib>
#include <functional>

#include "benchmarks.h"
#include "measure.h"
#include "random_matrix.h"
#include "yardstick.h"
#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel::bench {
namespace {

// Of the 1,319 items with 8 shots on a tiny model, the shared prefix counted once.
constexpr double kMultiplyAdds = 2.0e12;
constexpr std::size_t kRows = 512, kSide = 2048;

}  // namespace

void wordmath(const Settings& s) {
  set_sgemm_threads(s.pool->threads());
  const auto x = random_floats(kRows * kSide), w = random_floats(kSide * kSide);
  std::vector<float> out(kRows * kSide);
  const std::function<void()> products[] = {
      [&] { sgemm(kRows, kSide, kSide, x.data(), w.data(), out.data()); }};
  const auto rate = [&] {
    return static_cast<double>(kRows * kSide * kSide) / alternate(products, 9)[0];
  };
  const double before = rate();
  const std::string command =
      fmt::format("'{}' eval wordmath --model '{}' --threads {} > /dev/null", s.cupel,
                  s.load == "random" ? "models/tiny-v4-0731" : s.load, s.pool->threads());
  int status = 0;
  const double spent = seconds([&] { status = std::system(command.c_str()); });
  if (status != 0) throw InfrastructureError(command, fmt::format("ended with {}", status));
  const double sgemm_rate = (before + rate()) / 2;
  const double own_rate = kMultiplyAdds / spent;
  fmt::print(
      "wordmath, 1319 items, {} threads: {:.1f} G multiply-adds/s, load and text included; "
      "sgemm (core {}) {:.1f}: {:.0f}%\n",
      s.pool->threads(), own_rate * 1e-9, sgemm_core(), sgemm_rate * 1e-9,
      100 * own_rate / sgemm_rate);
}

}  // namespace cupel::bench
