#include <algorithm>
#include <cmath>
#include <functional>

#include "benchmarks.h"
#include "free_order.h"
#include "measure.h"
#include "random_matrix.h"
#include "yardstick.h"
#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/kernels/isa.h"
#include "cupel/kernels/linear.h"

namespace cupel::bench {
namespace {

constexpr std::size_t kCycle = std::size_t{1} << 30;
constexpr std::size_t kRows = 512;
constexpr std::size_t kExpertsTogether = 6;

const char* format_name(PackedMatrix::Format format) {
  switch (format) {
    case PackedMatrix::Format::kFp4:
      return "FP4";
    case PackedMatrix::Format::kFp8:
      return "FP8";
    case PackedMatrix::Format::kBf16:
      return "BF16";
    case PackedMatrix::Format::kF32:
      break;
  }
  return "F32";
}

std::vector<Shape> chosen_shapes(const Settings& s) {
  auto shapes = flash_shapes();
  std::erase_if(
      shapes, [&](const Shape& shape) { return shape.name.find(s.product) == std::string::npos; });
  return shapes;
}

LinearParams product(const PackedMatrix& weight, const std::vector<float>& x, std::size_t rows,
                     std::vector<float>& out) {
  return {.x = x.data(),
          .x_stride = weight.k(),
          .rows = rows,
          .weight = &weight,
          .out = out.data(),
          .out_stride = weight.n()};
}

// Against a benchmark of something else: sums of other orders are equal but for rounding.
void require_near(const std::vector<float>& a, const std::vector<float>& b) {
  const float largest =
      std::abs(*std::ranges::max_element(b, {}, [](float v) { return std::abs(v); }));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) <= 1e-4f * largest) continue;
    throw InfrastructureError("contract", fmt::format("output {}: {} and {}", i, a[i], b[i]));
  }
}

}  // namespace

void one_row(const Settings& s) {
  ReadBandwidth memory(*s.pool);
  fmt::print("one row, {} threads, {}; weights cycled over 1 GiB\n", s.pool->threads(),
             active_isa());
  fmt::print("{:18} {:5} {:>13} {:>10} {:>10} {:>7}\n", "product", "", "shape", "GB/s", "sum GB/s",
             "ratio");
  for (const Shape& shape : chosen_shapes(s)) {
    const auto matrices = random_matrices(shape, kCycle);
    const auto x = random_inputs(*s.pool, shape, 1);
    // A step multiplies by all its experts in one call; other products stand alone.
    const std::size_t together = shape.format == PackedMatrix::Format::kFp4 ? kExpertsTogether : 1;
    std::vector<float> out(together * shape.n);
    std::size_t bytes = 0;
    for (const PackedMatrix& m : matrices) bytes += m.bytes();
    const auto multiply = [&] {
      std::vector<LinearParams> calls;
      for (const PackedMatrix& m : matrices) {
        calls.push_back(product(m, x, 1, out));
        calls.back().out += (calls.size() - 1) * shape.n;
        if (calls.size() < together && &m != &matrices.back()) continue;
        linear(*s.pool, calls);
        calls.clear();
      }
    };
    const std::function<void()> runs[] = {multiply, [&] { memory.read(); }};
    const auto times = alternate(runs, s.repeats);
    const double rate = static_cast<double>(bytes) / times[0] * 1e-9;
    const double sum_rate = static_cast<double>(memory.bytes()) / times[1] * 1e-9;
    fmt::print("{:18} {:5} {:>13} {:10.1f} {:10.1f} {:6.0f}%\n", shape.name,
               format_name(shape.format), fmt::format("{} x {}", shape.n, shape.k), rate, sum_rate,
               100 * rate / sum_rate);
  }
}

void contract(const Settings& s) {
  fmt::print("one row, {} threads, {}; weights cycled over 1 GiB\n", s.pool->threads(),
             active_isa());
  fmt::print("{:18} {:5} {:>10} {:>16} {:>20}\n", "product", "", "GB/s", "free order GB/s",
             "time / free order");
  for (const Shape& shape : chosen_shapes(s)) {
    if (shape.n % 64 != 0 || shape.k < 4096 || !has_free_order(shape.format)) continue;
    const auto matrices = random_matrices(shape, kCycle);
    const auto x = random_inputs(*s.pool, shape, 1);
    std::vector<float> out(shape.n), expected(shape.n);
    linear(*s.pool, product(matrices[0], x, 1, expected));
    free_order_product(*s.pool, matrices[0], x.data(), out.data());
    require_near(out, expected);
    std::size_t bytes = 0;
    for (const PackedMatrix& m : matrices) bytes += m.bytes();
    const std::function<void()> runs[] = {[&] {
                                            for (const PackedMatrix& m : matrices)
                                              linear(*s.pool, product(m, x, 1, out));
                                          },
                                          [&] {
                                            for (const PackedMatrix& m : matrices) {
                                              free_order_product(*s.pool, m, x.data(), out.data());
                                            }
                                          }};
    const auto times = alternate(runs, s.repeats);
    const double gigabytes = static_cast<double>(bytes) * 1e-9;
    fmt::print("{:18} {:5} {:10.1f} {:16.1f} {:20.2f}\n", shape.name, format_name(shape.format),
               gigabytes / times[0], gigabytes / times[1], times[0] / times[1]);
  }
}

void many_rows(const Settings& s) {
  set_sgemm_threads(s.pool->threads());
  fmt::print("{} rows, {} threads, {}; OpenBLAS core {}\n", kRows, s.pool->threads(), active_isa(),
             sgemm_core());
  fmt::print("{:18} {:5} {:>13} {:>10} {:>12} {:>7}\n", "product", "", "shape", "GMAC/s",
             "sgemm GMAC/s", "ratio");
  for (const Shape& shape : chosen_shapes(s)) {
    const PackedMatrix matrix = random_matrix(shape, 1);
    const auto x = random_inputs(*s.pool, shape, kRows);
    const auto w = random_floats(shape.n * shape.k);
    std::vector<float> out(kRows * shape.n);
    const std::function<void()> runs[] = {
        [&] { linear(*s.pool, product(matrix, x, kRows, out)); },
        [&] { sgemm(kRows, shape.n, shape.k, x.data(), w.data(), out.data()); }};
    const auto times = alternate(runs, s.repeats);
    const double macs = static_cast<double>(kRows * shape.n * shape.k) * 1e-9;
    fmt::print("{:18} {:5} {:>13} {:10.1f} {:12.1f} {:6.0f}%\n", shape.name,
               format_name(shape.format), fmt::format("{} x {}", shape.n, shape.k), macs / times[0],
               macs / times[1], 100 * times[1] / times[0]);
  }
}

}  // namespace cupel::bench
