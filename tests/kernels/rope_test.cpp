#include "cupel/kernels/rope.h"

#include <cmath>
#include <complex>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/cpu/cpu_executor.h"

namespace cupel {
namespace {

using test::same_bits;

const RopeSettings kPlain{.theta = 10000};
const RopeSettings kYarn{.theta = 160000, .yarn = true, .factor = 16};

// Near, at the bounds of windows, and far: the last angles are about 10^6 rad.
const std::vector<std::int64_t> kPositions = {0, 1, 2, 127, 128, 4095, 65536, 1000003, 1048575};

TEST(RopeFrequencies, PlainIsAPowerOfTheBase) {
  const std::vector<float> freq = rope_frequencies(kPlain);
  ASSERT_EQ(freq.size(), 32u);
  for (std::size_t i = 0; i < freq.size(); ++i) {
    const double exact = std::pow(10.0, -static_cast<double>(i) / 8);
    EXPECT_NEAR(freq[i], exact, 0x1p-23 * exact) << i;
  }
}

// The table of spec 3.4, there computed with another pow: up to 2 ulp apart.
TEST(RopeFrequencies, YarnEqualsTheTableOfTheSpecification) {
  const double table[32] = {1,
                            0.687656045,
                            0.472870797,
                            0.325172454,
                            0.223606795,
                            0.153764561,
                            0.10573712,
                            0.0727107748,
                            0.0500000007,
                            0.0343828015,
                            0.0236435402,
                            0.0162586235,
                            0.0111803403,
                            0.00768822804,
                            0.00528685655,
                            0.00363553851,
                            0.00226562493,
                            0.00139680132,
                            0.000849689706,
                            0.000508081983,
                            0.000296977785,
                            0.000168179977,
                            9.08678412e-05,
                            4.54442306e-05,
                            1.95312532e-05,
                            5.37231244e-06,
                            3.69430336e-06,
                            2.5404097e-06,
                            1.74692821e-06,
                            1.20128561e-06,
                            8.260713e-07,
                            5.6805294e-07};
  const std::vector<float> freq = rope_frequencies(kYarn);
  ASSERT_EQ(freq.size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(freq[i], table[i], 2 * 0x1p-23 * table[i]) << i;
}

struct Rotated {
  std::vector<float> before, after;
};

Rotated rotate(const RopeSettings& settings, std::size_t vectors, std::size_t width,
               bool inverse = false, bool round = false) {
  test::Random random(71);
  CpuExecutor executor(2);
  const std::vector<float> freq = rope_frequencies(settings);
  const RopeTable table(executor, freq, kPositions);
  Rotated r{random.bf16_normals(kPositions.size() * vectors * width), {}};
  r.after = r.before;
  executor.rope({.x = r.after.data(),
                 .rows = kPositions.size(),
                 .vectors = vectors,
                 .width = width,
                 .dim = table.dim,
                 .cosines = table.cosines.data(),
                 .sines = table.sines.data(),
                 .inverse = inverse,
                 .round_bf16 = round});
  return r;
}

// Interleaved pairs as complex numbers, times e^(i angle) with the fp32 angle of spec 3.4.
TEST(Rope, RotatesInterleavedPairsOfTheLastElements) {
  for (const RopeSettings& settings : {kPlain, kYarn}) {
    const std::vector<float> freq = rope_frequencies(settings);
    for (const bool inverse : {false, true}) {
      constexpr std::size_t kVectors = 3, kWidth = 512;
      const Rotated r = rotate(settings, kVectors, kWidth, inverse);
      for (std::size_t v = 0; v < kPositions.size() * kVectors; ++v) {
        const float* before = r.before.data() + v * kWidth;
        const float* after = r.after.data() + v * kWidth;
        ASSERT_TRUE(same_bits(std::span(after, kWidth - 64), std::span(before, kWidth - 64)));
        for (std::size_t i = 0; i < 32; ++i) {
          const std::size_t at = kWidth - 64 + 2 * i;
          const double angle = static_cast<float>(kPositions[v / kVectors]) * freq[i];
          const std::complex<double> x(before[at], before[at + 1]);
          const std::complex<double> y = x * std::polar(1.0, inverse ? -angle : angle);
          const double bound = 4 * 0x1p-24 * std::abs(x) * 1.5;
          ASSERT_NEAR(after[at], y.real(), bound) << v << " pair " << i;
          ASSERT_NEAR(after[at + 1], y.imag(), bound) << v << " pair " << i;
        }
      }
    }
  }
}

TEST(Rope, KeepsTheNormAndIsUndoneByItsInverse) {
  CpuExecutor executor(1);
  const std::vector<float> freq = rope_frequencies(kYarn);
  const RopeTable table(executor, freq, kPositions);
  const Rotated r = rotate(kYarn, 1, 64);
  std::vector<float> back = r.after;
  executor.rope({.x = back.data(),
                 .rows = kPositions.size(),
                 .width = 64,
                 .dim = table.dim,
                 .cosines = table.cosines.data(),
                 .sines = table.sines.data(),
                 .inverse = true});
  for (std::size_t i = 0; i < back.size(); i += 2) {
    const double norm = std::hypot(r.before[i], r.before[i + 1]);
    EXPECT_NEAR(std::hypot(r.after[i], r.after[i + 1]), norm, 4 * 0x1p-24 * norm);
    EXPECT_NEAR(back[i], r.before[i], 8 * 0x1p-24 * norm);
    EXPECT_NEAR(back[i + 1], r.before[i + 1], 8 * 0x1p-24 * norm);
  }
  // Position 0 turns nothing.
  EXPECT_TRUE(same_bits(std::span(r.after).first(64), std::span(r.before).first(64)));
}

TEST(Rope, RoundsTheResultOnceToBf16) {
  std::vector<float> plain = rotate(kYarn, 2, 128).after;
  for (float& v : plain) v = round_bf16(v);
  EXPECT_TRUE(same_bits(rotate(kYarn, 2, 128, false, true).after, plain));
}

}  // namespace
}  // namespace cupel
