#include "cupel/kernels/hyper_connection.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/cpu/packed_matrix.h"
#include "cupel/kernels/linear.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;
using Doubles = std::vector<double>;

constexpr std::size_t kHc = 4, kWidth = 72, kFlat = kHc * kWidth, kOutputs = (2 + kHc) * kHc;
constexpr float kEps = 1e-6f;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// fn . v / rms(v) for one row.
Doubles exact_mixes(const float* streams, const std::vector<float>& fn) {
  double square = 0;
  for (std::size_t i = 0; i < kFlat; ++i) square += double{streams[i]} * streams[i];
  const double rms = std::sqrt(square / kFlat + kEps);
  Doubles m(fn.size() / kFlat);
  for (std::size_t o = 0; o < m.size(); ++o) {
    for (std::size_t i = 0; i < kFlat; ++i) m[o] += double{fn[o * kFlat + i]} * streams[i];
    m[o] /= rms;
  }
  return m;
}

Doubles exact_mixture(const float* streams, const Doubles& pre) {
  Doubles u(kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) {
    for (std::size_t j = 0; j < kHc; ++j) u[i] += pre[j] * streams[j * kWidth + i];
  }
  return u;
}

// Spec 3.2 as it is written.
Doubles exact_comb(Doubles c, int iterations) {
  const auto normalise = [&](bool rows) {
    for (std::size_t a = 0; a < kHc; ++a) {
      double sum = kEps;
      for (std::size_t i = 0; i < kHc; ++i) sum += rows ? c[a * kHc + i] : c[i * kHc + a];
      for (std::size_t i = 0; i < kHc; ++i) (rows ? c[a * kHc + i] : c[i * kHc + a]) /= sum;
    }
  };
  for (std::size_t j = 0; j < kHc; ++j) {
    double sum = 0;
    for (std::size_t k = 0; k < kHc; ++k) sum += std::exp(c[j * kHc + k]);
    for (std::size_t k = 0; k < kHc; ++k) c[j * kHc + k] = std::exp(c[j * kHc + k]) / sum + kEps;
  }
  normalise(false);
  for (int i = 1; i < iterations; ++i) {
    normalise(true);
    normalise(false);
  }
  return c;
}

struct Inputs {
  std::size_t rows;
  std::vector<float> streams, fn, scale, base;
  PackedMatrix packed;

  Inputs(std::size_t rows_in, std::size_t outputs, std::uint64_t seed) : rows(rows_in) {
    test::Random random(seed);
    streams = random.bf16_normals(rows * kFlat, 3);
    fn = random.normals(outputs * kFlat, 0.05);
    scale = {0.7f, 1.3f, 2.0f};
    base = random.normals(outputs, 1);
    packed = PackedMatrix::f32(outputs, kFlat, fn);
  }

  // What the kernels are given: fn . streams.
  std::vector<float> products(ThreadPool& pool) const {
    std::vector<float> out(rows * packed.n());
    linear(pool, {.x = streams.data(),
                  .x_stride = kFlat,
                  .rows = rows,
                  .weight = &packed,
                  .out = out.data(),
                  .out_stride = packed.n()});
    return out;
  }
};

struct Mixed {
  std::vector<float> mixed, post, comb;
};

Mixed mix(const Inputs& s, int iterations = 20, bool round = false, int threads = 2) {
  ThreadPool pool(threads);
  Mixed out{std::vector<float>(s.rows * kWidth), std::vector<float>(s.rows * kHc),
            std::vector<float>(s.rows * kHc * kHc)};
  std::vector<float> mixes = s.products(pool);
  hyper_mix(pool, {.streams = s.streams.data(),
                   .rows = s.rows,
                   .hc = kHc,
                   .width = kWidth,
                   .scale = s.scale.data(),
                   .base = s.base.data(),
                   .sinkhorn_iters = iterations,
                   .hc_eps = kEps,
                   .norm_eps = kEps,
                   .round_bf16 = round,
                   .mixes = mixes.data(),
                   .mixed = out.mixed.data(),
                   .post = out.post.data(),
                   .comb = out.comb.data()});
  return out;
}

// Errors: of m about 1e-6 (288 products), of everything after it a few ulp more.
constexpr double kTolerance = 2e-5;

TEST(HyperMix, IsCloseToDouble) {
  const Inputs s(20, kOutputs, 81);
  for (const int iterations : {1, 2, 20}) {
    const Mixed out = mix(s, iterations);
    for (std::size_t r = 0; r < s.rows; ++r) {
      const float* streams = s.streams.data() + r * kFlat;
      const Doubles m = exact_mixes(streams, s.fn);
      Doubles pre, c;
      for (std::size_t j = 0; j < kHc; ++j) {
        pre.push_back(sigmoid(m[j] * s.scale[0] + s.base[j]) + kEps);
        const double post = 2 * sigmoid(m[kHc + j] * s.scale[1] + s.base[kHc + j]);
        EXPECT_NEAR(out.post[r * kHc + j], post, kTolerance);
      }
      for (std::size_t i = 2 * kHc; i < kOutputs; ++i) {
        c.push_back(m[i] * s.scale[2] + s.base[i]);
      }
      c = exact_comb(c, iterations);
      for (std::size_t i = 0; i < kHc * kHc; ++i) {
        EXPECT_NEAR(out.comb[r * kHc * kHc + i], c[i], kTolerance);
      }
      const Doubles u = exact_mixture(streams, pre);
      for (std::size_t i = 0; i < kWidth; ++i) {
        EXPECT_NEAR(out.mixed[r * kWidth + i], u[i], 10 * kTolerance);
      }
    }
  }
}

TEST(HyperMix, ColumnsOfTheCombinationSumToOne) {
  const Inputs s(50, kOutputs, 82);
  const Mixed out = mix(s);
  for (std::size_t r = 0; r < s.rows; ++r) {
    for (std::size_t k = 0; k < kHc; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < kHc; ++j) sum += out.comb[(r * kHc + j) * kHc + k];
      EXPECT_NEAR(sum, 1, 2e-6);  // less than 1 by the epsilon of the last pass
    }
  }
}

TEST(HyperMix, RoundsTheMixtureOnly) {
  const Inputs s(3, kOutputs, 83);
  Mixed plain = mix(s);
  const Mixed rounded = mix(s, 20, true);
  std::ranges::transform(plain.mixed, plain.mixed.begin(), round_bf16);
  EXPECT_TRUE(same_bits(rounded.mixed, plain.mixed));
  EXPECT_TRUE(same_bits(rounded.post, plain.post));
  EXPECT_TRUE(same_bits(rounded.comb, plain.comb));
}

TEST(HyperMix, RowsDoNotDependOnCompanyThreadsOrInstructionSet) {
  const Inputs all(40, kOutputs, 84);
  const Mixed expected = mix(all);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    const Mixed again = mix(all, 20, false, 3);
    EXPECT_TRUE(same_bits(again.mixed, expected.mixed));
    EXPECT_TRUE(same_bits(again.comb, expected.comb));
    for (const std::size_t r : {0, 17, 39}) {
      Inputs one(1, kOutputs, 84);
      one.streams.assign(all.streams.data() + r * kFlat, all.streams.data() + (r + 1) * kFlat);
      one.fn = all.fn;
      one.base = all.base;
      one.packed = PackedMatrix::f32(kOutputs, kFlat, one.fn);
      const Mixed alone = mix(one);
      EXPECT_TRUE(same_bits(alone.mixed, std::span(expected.mixed).subspan(r * kWidth, kWidth)));
      EXPECT_TRUE(same_bits(alone.post, std::span(expected.post).subspan(r * kHc, kHc)));
      EXPECT_TRUE(same_bits(alone.comb, std::span(expected.comb).subspan(r * 16, 16)));
    }
  }
}

TEST(HyperJoin, AppliesTheTransposeAndAddsTheOutput) {
  test::Random random(85);
  ThreadPool pool(2);
  constexpr std::size_t kRows = 20;
  const std::vector<float> streams = random.bf16_normals(kRows * kFlat, 3);
  const std::vector<float> y = random.bf16_normals(kRows * kWidth);
  const std::vector<float> post = random.normals(kRows * kHc);
  const std::vector<float> comb = random.normals(kRows * kHc * kHc);
  std::vector<float> plain = streams, rounded = streams;
  HyperJoinParams params{.y = y.data(),
                         .post = post.data(),
                         .comb = comb.data(),
                         .streams = plain.data(),
                         .rows = kRows,
                         .hc = kHc,
                         .width = kWidth};
  hyper_join(pool, params);
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t k = 0; k < kHc; ++k) {
      for (std::size_t i = 0; i < kWidth; ++i) {
        double exact = double{post[r * kHc + k]} * y[r * kWidth + i], magnitude = std::fabs(exact);
        for (std::size_t j = 0; j < kHc; ++j) {
          const double term =
              double{comb[(r * kHc + j) * kHc + k]} * streams[r * kFlat + j * kWidth + i];
          exact += term;
          magnitude += std::fabs(term);
        }
        ASSERT_NEAR(plain[r * kFlat + k * kWidth + i], exact, 6 * 0x1p-24 * magnitude);
      }
    }
  }
  params.streams = rounded.data();
  params.round_bf16 = true;
  hyper_join(pool, params);
  std::ranges::transform(plain, plain.begin(), round_bf16);
  EXPECT_TRUE(same_bits(rounded, plain));
}

TEST(HyperHead, IsCloseToDouble) {
  const Inputs s(20, kHc, 86);
  ThreadPool pool(2);
  const std::vector<float> mixes = s.products(pool);
  std::vector<float> plain(s.rows * kWidth), rounded(s.rows * kWidth);
  HyperHeadParams params{.streams = s.streams.data(),
                         .rows = s.rows,
                         .hc = kHc,
                         .width = kWidth,
                         .scale = s.scale.data(),
                         .base = s.base.data(),
                         .hc_eps = kEps,
                         .norm_eps = kEps,
                         .mixes = mixes.data(),
                         .mixed = plain.data()};
  hyper_head(pool, params);
  for (std::size_t r = 0; r < s.rows; ++r) {
    Doubles pre = exact_mixes(s.streams.data() + r * kFlat, s.fn);
    for (std::size_t j = 0; j < kHc; ++j) {
      pre[j] = sigmoid(pre[j] * s.scale[0] + s.base[j]) + kEps;
    }
    const Doubles u = exact_mixture(s.streams.data() + r * kFlat, pre);
    for (std::size_t i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(plain[r * kWidth + i], u[i], 10 * kTolerance);
    }
  }
  params.mixed = rounded.data();
  params.round_bf16 = true;
  hyper_head(pool, params);
  std::ranges::transform(plain, plain.begin(), round_bf16);
  EXPECT_TRUE(same_bits(rounded, plain));
}

}  // namespace
}  // namespace cupel
