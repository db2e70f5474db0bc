#include "cupel/kernels/compress_windows.h"

#include <cmath>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

constexpr std::size_t kDim = 32;

struct Compressor {
  int ratio;
  std::size_t width;
  std::vector<float> ape;

  explicit Compressor(int ratio_in)
      : ratio(ratio_in),
        width(ratio == 4 ? 2 * kDim : kDim),
        ape(test::Random(3).normals(static_cast<std::size_t>(ratio) * width)) {}

  // The entries of a sequence fed in steps of the given lengths.
  std::vector<float> run(const std::vector<float>& values, const std::vector<float>& gates,
                         const std::vector<std::size_t>& steps) const {
    // A state starts undefined: nothing of it may be read before it is written.
    std::vector<float> state_values(compressor_state_rows(ratio) * width, NAN);
    std::vector<float> state_gates = state_values, entries;
    ThreadPool pool(2);
    std::size_t at = 0;
    for (const std::size_t rows : steps) {
      const auto r = static_cast<std::size_t>(ratio);
      std::vector<float> out(((at + rows) / r - at / r) * kDim);
      const CompressSegment segment{.state_values = state_values.data(),
                                    .state_gates = state_gates.data(),
                                    .start = static_cast<std::int64_t>(at),
                                    .rows = rows};
      compress_windows(pool, {.segments = {&segment, 1},
                              .values = values.data() + at * width,
                              .gates = gates.data() + at * width,
                              .ape = ape.data(),
                              .ratio = ratio,
                              .dim = kDim,
                              .out = out.data()});
      entries.insert(entries.end(), out.begin(), out.end());
      at += rows;
    }
    return entries;
  }
};

class CompressWindows : public testing::TestWithParam<int> {};

// Against double arithmetic on the definition of spec 3.7: a softmax over the window's rows in
// every column; ratio 4 looks back one window, with the first half of the columns.
TEST_P(CompressWindows, AreSoftmaxesOverTheRowsOfTheWindow) {
  const Compressor c(GetParam());
  const auto ratio = static_cast<std::size_t>(c.ratio);
  const std::size_t windows = 3, rows = windows * ratio + 1;
  test::Random random(5);
  const auto values = random.normals(rows * c.width), gates = random.normals(rows * c.width, 2);
  const std::vector<float> entries = c.run(values, gates, {rows});
  ASSERT_EQ(entries.size(), windows * kDim);
  for (std::size_t w = 0; w < windows; ++w) {
    for (std::size_t col = 0; col < kDim; ++col) {
      double total = 0, sum = 0;
      const auto add = [&](std::size_t row, std::size_t column) {
        const double weight =
            std::exp(double{gates[row * c.width + column]} + c.ape[row % ratio * c.width + column]);
        total += weight;
        sum += weight * values[row * c.width + column];
      };
      for (std::size_t t = 0; t < ratio; ++t) {
        if (c.ratio == 4 && w > 0) add((w - 1) * ratio + t, col);
        add(w * ratio + t, c.ratio == 4 ? kDim + col : col);
      }
      EXPECT_NEAR(entries[w * kDim + col], sum / total, 1e-5) << "window " << w;
    }
  }
}

TEST_P(CompressWindows, DoNotDependOnTheSteps) {
  const Compressor c(GetParam());
  constexpr std::size_t kRows = 261;
  test::Random random(6);
  const auto values = random.normals(kRows * c.width), gates = random.normals(kRows * c.width);
  const std::vector<float> whole = c.run(values, gates, {kRows});
  EXPECT_TRUE(test::same_bits(c.run(values, gates, std::vector<std::size_t>(kRows, 1)), whole));
  EXPECT_TRUE(test::same_bits(c.run(values, gates, {3, 5, 120, 1, 132}), whole));
}

INSTANTIATE_TEST_SUITE_P(Ratios, CompressWindows, testing::Values(4, 128));

}  // namespace
}  // namespace cupel
