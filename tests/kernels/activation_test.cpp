#include "cupel/kernels/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/quantise.h"
#include "cupel/kernels/exp.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The scalar quantiser of formats/, a short last group filled up with zeros.
std::vector<float> by_formats(const std::vector<float>& x, std::size_t rows, std::size_t width) {
  const std::size_t full = (width + 127) / 128 * 128;
  std::vector<float> out;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<float> row(full, 0.0f);
    std::copy_n(x.data() + r * width, width, row.data());
    fake_quantise_activation(row);
    out.insert(out.end(), row.data(), row.data() + width);
  }
  return out;
}

void expect_as_formats(const std::vector<float>& x, std::size_t rows, std::size_t width) {
  const std::vector<float> expected = by_formats(x, rows, width);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<float> out(x.size(), -7.0f), in_place = x;
      quantise_activation(pool, {.in = x.data(), .out = out.data(), .rows = rows, .width = width});
      EXPECT_TRUE(same_bits(out, expected)) << active_isa() << " width " << width;
      quantise_activation(
          pool, {.in = in_place.data(), .out = in_place.data(), .rows = rows, .width = width});
      EXPECT_TRUE(same_bits(in_place, expected)) << active_isa() << " width " << width;
    }
  }
}

TEST(QuantiseActivation, EqualsTheFormatOnUnevenData) {
  test::Random random(21);
  for (const std::size_t width : {1, 7, 8, 15, 16, 17, 100, 127, 128, 129, 256, 300, 512}) {
    expect_as_formats(random.uneven(70 * width), 70, width);
  }
}

TEST(QuantiseActivation, EqualsTheFormatOnEveryBf16Value) {
  std::vector<float> alone, bounded;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(bits));
    alone.push_back(value);  // among its neighbours
    // Beside 448, of scale 1: reaches the subnormal steps and the ties of the grid.
    if (std::fabs(value) <= 448.0f) bounded.push_back(value);
    if (bounded.size() % 128 == 127) bounded.push_back(448.0f);
  }
  bounded.resize(bounded.size() / 128 * 128);
  expect_as_formats(alone, alone.size() / 128, 128);
  expect_as_formats(bounded, bounded.size() / 128, 128);
}

TEST(QuantiseActivation, NonFiniteElementPoisonsItsGroupOnly) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (std::size_t at = 128; at < 300; at += 13) {
      std::vector<float> x(300, 1.25f);
      x[at] = bad;
      expect_as_formats(x, 1, 300);
    }
  }
  // What that means, once in plain words.
  ThreadPool pool(1);
  std::vector<float> x(256, 1.25f);
  x[200] = kInfinity;
  quantise_activation(pool, {.in = x.data(), .out = x.data(), .rows = 1, .width = 256});
  EXPECT_EQ(x[127], 1.25f);
  EXPECT_TRUE(std::isnan(x[128]) && std::isnan(x[200]) && std::isnan(x[255]));
}

struct SwigluCase {
  std::vector<float> gate, up, weight;
};

SwigluCase swiglu_case(std::size_t rows, std::size_t width) {
  test::Random random(22);
  SwigluCase c{random.normals(rows * width, 6), random.normals(rows * width, 6),
               random.normals(rows, 1)};
  for (std::size_t i = 0; i < c.gate.size(); i += 9)
    c.gate[i] *= 20;  // clamps, and exp beyond fp32
  return c;
}

double swiglu_exact(double gate, double up, double limit, double weight) {
  const double g = std::fmin(gate, limit);
  return g / (1 + std::exp(-g)) * std::fmax(-limit, std::fmin(limit, up)) * weight;
}

TEST(Swiglu, IsCloseToDoubleAndEqualsTheScalarOrder) {
  constexpr std::size_t kRows = 40;
  constexpr float kLimit = 10;
  for (const std::size_t width : {1, 7, 8, 15, 16, 17, 40, 128}) {
    const SwigluCase c = swiglu_case(kRows, width);
    std::vector<float> expected(kRows * width);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float g = std::min(c.gate[i], kLimit), u = std::clamp(c.up[i], -kLimit, kLimit);
      expected[i] = g / (1.0f + exp_f32(-g)) * u * c.weight[i / width];
      // exp 2 ulp, then four roundings: below 2^-21 in all; results near the smallest normal float
      // may lose more.
      const double exact = swiglu_exact(c.gate[i], c.up[i], kLimit, c.weight[i / width]);
      EXPECT_NEAR(expected[i], exact, 0x1p-21 * std::fabs(exact) + 0x1p-110) << c.gate[i];
    }
    for (const bool round : {false, true}) {
      if (round) std::ranges::transform(expected, expected.begin(), round_bf16);
      for (const Isa isa : available_isas()) {
        const IsaScope scope(isa);
        ThreadPool pool(2);
        std::vector<float> out(expected.size());
        swiglu(pool, {.gate = c.gate.data(),
                      .up = c.up.data(),
                      .weight = c.weight.data(),
                      .out = out.data(),
                      .rows = kRows,
                      .width = width,
                      .limit = kLimit,
                      .round_bf16 = round});
        EXPECT_TRUE(same_bits(out, expected)) << active_isa() << " width " << width;
      }
    }
  }
}

TEST(Swiglu, NoWeightIsWeightOne) {
  const SwigluCase c = swiglu_case(3, 20);
  const std::vector<float> ones(3, 1.0f);
  ThreadPool pool(1);
  std::vector<float> without(60), with(60);
  SwigluParams params{.gate = c.gate.data(),
                      .up = c.up.data(),
                      .out = without.data(),
                      .rows = 3,
                      .width = 20,
                      .limit = 10};
  swiglu(pool, params);
  params.weight = ones.data();
  params.out = with.data();
  swiglu(pool, params);
  EXPECT_TRUE(same_bits(without, with));
}

// A clamp must not turn a broken value into a plausible one.
TEST(Swiglu, NanStaysNan) {
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    ThreadPool pool(1);
    for (const bool in_gate : {false, true}) {
      std::vector<float> gate(20, 1.0f), up(20, 1.0f), out(20);
      for (const std::size_t at : {0, 19}) (in_gate ? gate : up)[at] = kNan;
      swiglu(pool, {.gate = gate.data(),
                    .up = up.data(),
                    .out = out.data(),
                    .rows = 1,
                    .width = 20,
                    .limit = 10});
      EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[19])) << active_isa();
      EXPECT_TRUE(std::isfinite(out[1])) << active_isa();
    }
  }
}

}  // namespace
}  // namespace cupel
