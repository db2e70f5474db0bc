#include "cupel/kernels/linear.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/kernels/activation.h"
#include "cupel/kernels/cpu/packed_matrix.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;
using Format = PackedMatrix::Format;

constexpr Format kFormats[] = {Format::kFp4, Format::kFp8, Format::kBf16, Format::kF32};
constexpr std::size_t kMaxRows = 200;

std::string name_of(Format format) {
  switch (format) {
    case Format::kFp4:
      return "fp4";
    case Format::kFp8:
      return "fp8";
    case Format::kBf16:
      return "bf16";
    case Format::kF32:
      return "f32";
  }
  return "";
}

// A packed matrix beside its values, dequantised one by one.
struct KnownMatrix {
  PackedMatrix packed;
  std::vector<float> values;  // [n, k]
};

KnownMatrix fp4_matrix(std::size_t n, std::size_t k, const std::vector<std::uint8_t>& codes,
                       const std::vector<std::uint8_t>& scales) {
  KnownMatrix m{PackedMatrix::fp4(n, k, codes, scales), std::vector<float>(n * k)};
  for (std::size_t i = 0; i < n * k; ++i) {
    const std::uint8_t code = i % 2 == 0 ? e2m1_even(codes[i / 2]) : e2m1_odd(codes[i / 2]);
    m.values[i] = e2m1_to_float(code) * e8m0_to_float(scales[i / 32]);
  }
  return m;
}

KnownMatrix fp8_matrix(std::size_t n, std::size_t k, const std::vector<std::uint8_t>& codes,
                       const std::vector<float>& scales) {
  KnownMatrix m{PackedMatrix::fp8(n, k, codes, scales), std::vector<float>(n * k)};
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t i = 0; i < k; ++i) {
      const float scale = scales[row / 128 * ((k + 127) / 128) + i / 128];
      m.values[row * k + i] = e4m3_to_float(codes[row * k + i]) * scale;
    }
  }
  return m;
}

KnownMatrix random_matrix(test::Random& random, Format format, std::size_t n, std::size_t k) {
  std::vector<std::uint8_t> codes(n * k);
  switch (format) {
    case Format::kFp4: {
      codes.resize(n * k / 2);
      for (auto& c : codes) c = static_cast<std::uint8_t>(random.below(256));
      std::vector<std::uint8_t> scales(n * k / 32);
      for (auto& s : scales) s = static_cast<std::uint8_t>(117 + random.below(8));
      return fp4_matrix(n, k, codes, scales);
    }
    case Format::kFp8: {
      for (auto& c : codes) {
        do {
          c = static_cast<std::uint8_t>(random.below(256));
        } while ((c & 0x7f) == kE4m3Nan);
      }
      std::vector<float> scales((n + 127) / 128 * ((k + 127) / 128));
      for (auto& s : scales) s = std::exp2(static_cast<float>(random.below(6)) - 9.0f);
      return fp8_matrix(n, k, codes, scales);
    }
    case Format::kBf16: {
      const std::vector<float> values = random.bf16_normals(n * k);
      std::vector<std::uint16_t> bits;
      for (const float v : values) bits.push_back(bf16_from_float(v));
      return {PackedMatrix::bf16(n, k, bits), values};
    }
    case Format::kF32: {
      const std::vector<float> values = random.normals(n * k);
      return {PackedMatrix::f32(n, k, values), values};
    }
  }
  return {};
}

// The order that linear.h documents, one element at a time: [rows, n].
std::vector<float> in_documented_order(const KnownMatrix& m, const std::vector<float>& x,
                                       std::size_t rows) {
  const std::size_t n = m.packed.n(), k = m.packed.k();
  const std::size_t block = m.packed.sum_block();
  std::vector<float> out(rows * n);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t o = 0; o < n; ++o) {
      float total = 0;
      for (std::size_t begin = 0; begin < k; begin += block) {
        float sum = 0;
        for (std::size_t i = begin; i < std::min(k, begin + block); ++i) {
          sum = std::fma(x[r * k + i], m.values[o * k + i], sum);
        }
        total += sum;
      }
      out[r * n + o] = total;
    }
  }
  return out;
}

std::vector<float> multiply(ThreadPool& pool, const PackedMatrix& w, const std::vector<float>& x,
                            std::size_t rows, bool round_bf16 = false) {
  std::vector<float> out(rows * w.n(), std::numeric_limits<float>::quiet_NaN());
  linear(pool, {.x = x.data(),
                .x_stride = w.k(),
                .rows = rows,
                .weight = &w,
                .out = out.data(),
                .out_stride = w.n(),
                .round_bf16 = round_bf16});
  return out;
}

struct Shape {
  std::size_t n, k;
};

// Panels of 16 in part, exact and several; k in part of a block, of a decoding of 256, and beyond.
std::vector<Shape> shapes(Format format) {
  std::vector<Shape> list;
  for (const std::size_t n : {1, 15, 16, 17, 24, 40, 130}) {
    for (const std::size_t k : {32, 64, 128, 160, 256, 384, 544}) list.push_back({n, k});
    if (format == Format::kFp4) continue;
    for (const std::size_t k : {1, 5, 100, 129, 300}) list.push_back({n, k});
  }
  return list;
}

class LinearFormat : public testing::TestWithParam<Format> {};

// Every row is compared with the same rendering, whatever rows stand beside it.
TEST_P(LinearFormat, EqualsTheDocumentedOrderBitForBit) {
  test::Random random(11);
  ThreadPool pool(1);
  for (const auto& [n, k] : shapes(GetParam())) {
    const KnownMatrix m = random_matrix(random, GetParam(), n, k);
    const std::vector<float> x = random.normals(kMaxRows * k);
    const std::vector<float> expected = in_documented_order(m, x, kMaxRows);
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      for (const std::size_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 95, 96, 97, 200}) {
        const std::vector<float> out = multiply(pool, m.packed, x, rows);
        ASSERT_TRUE(same_bits(out, std::span(expected).first(rows * n)))
            << active_isa() << " n " << n << " k " << k << " rows " << rows;
      }
    }
  }
}

// A block's sum has one rounding a term, the total one more a block: with u = 2^-24, an error of at
// most (block + k / block) u sum |x w| to first order; 1.01 covers the second.
TEST_P(LinearFormat, IsWithinTheErrorBoundOfDouble) {
  test::Random random(12);
  ThreadPool pool(1);
  for (const auto& [n, k] : shapes(GetParam())) {
    const std::size_t rows = 7;
    const KnownMatrix m = random_matrix(random, GetParam(), n, k);
    const std::vector<float> x = random.normals(rows * k);
    const std::vector<float> out = multiply(pool, m.packed, x, rows);
    const auto block = static_cast<double>(m.packed.sum_block());
    const double roundings = block + std::ceil(static_cast<double>(k) / block);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t o = 0; o < n; ++o) {
        double exact = 0, magnitude = 0;
        for (std::size_t i = 0; i < k; ++i) {
          const double term = static_cast<double>(x[r * k + i]) * m.values[o * k + i];
          exact += term;
          magnitude += std::fabs(term);
        }
        ASSERT_LE(std::fabs(out[r * n + o] - exact), 1.01 * roundings * 0x1p-24 * magnitude)
            << "n " << n << " k " << k << " row " << r << " output " << o;
      }
    }
  }
}

TEST_P(LinearFormat, DoesNotDependOnThreadsOrInstructionSet) {
  test::Random random(13);
  const KnownMatrix m = random_matrix(random, GetParam(), 130, 384);
  const std::vector<float> x = random.normals(kMaxRows * 384);
  const std::vector<float> expected = in_documented_order(m, x, kMaxRows);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      EXPECT_TRUE(same_bits(multiply(pool, m.packed, x, kMaxRows), expected))
          << active_isa() << ", " << threads << " threads";
    }
  }
}

TEST_P(LinearFormat, RoundsTheSumOnceToBf16) {
  test::Random random(14);
  ThreadPool pool(2);
  const KnownMatrix m = random_matrix(random, GetParam(), 40, 160);
  const std::vector<float> x = random.normals(13 * 160);
  std::vector<float> expected = in_documented_order(m, x, 13);
  for (float& v : expected) v = round_bf16(v);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    EXPECT_TRUE(same_bits(multiply(pool, m.packed, x, 13, true), expected)) << active_isa();
  }
}

TEST_P(LinearFormat, LeavesWhatLiesBetweenStridedRows) {
  test::Random random(15);
  ThreadPool pool(2);
  constexpr std::size_t kN = 24, kK = 64, kRows = 14, kInGap = 3, kOutGap = 5;
  const KnownMatrix m = random_matrix(random, GetParam(), kN, kK);
  const std::vector<float> x = random.normals(kRows * kK);
  const std::vector<float> expected = in_documented_order(m, x, kRows);
  std::vector<float> wide(kRows * (kK + kInGap), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t r = 0; r < kRows; ++r) {
    std::copy_n(x.data() + r * kK, kK, wide.data() + r * (kK + kInGap));
  }
  std::vector<float> out(kRows * (kN + kOutGap), -7.0f);
  linear(pool, {.x = wide.data(),
                .x_stride = kK + kInGap,
                .rows = kRows,
                .weight = &m.packed,
                .out = out.data(),
                .out_stride = kN + kOutGap});
  for (std::size_t r = 0; r < kRows; ++r) {
    const std::span<const float> row(out.data() + r * (kN + kOutGap), kN + kOutGap);
    EXPECT_TRUE(same_bits(row.first(kN), std::span(expected).subspan(r * kN, kN)));
    EXPECT_TRUE(same_bits(row.subspan(kN), std::vector<float>(kOutGap, -7.0f)));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearFormat, testing::ValuesIn(kFormats),
                         [](const auto& info) { return name_of(info.param); });

TEST(Linear, SeveralProductsEqualOneAtATime) {
  test::Random random(16);
  std::vector<KnownMatrix> matrices;
  std::vector<std::vector<float>> inputs, expected, outputs;
  std::vector<LinearParams> products;
  const std::size_t rows_of[] = {97, 1, 0, 13, 200, 2};
  for (std::size_t i = 0; i < std::size(rows_of); ++i) {
    const std::size_t n = 17 + 20 * i, k = 32 * (i + 1);
    matrices.push_back(random_matrix(random, kFormats[i % 4], n, k));
    inputs.push_back(random.normals(std::max<std::size_t>(1, rows_of[i]) * k));
    expected.push_back(in_documented_order(matrices[i], inputs[i], rows_of[i]));
    outputs.emplace_back(rows_of[i] * n);
  }
  for (std::size_t i = 0; i < std::size(rows_of); ++i) {
    products.push_back({.x = inputs[i].data(),
                        .x_stride = matrices[i].packed.k(),
                        .rows = rows_of[i],
                        .weight = &matrices[i].packed,
                        .out = outputs[i].data(),
                        .out_stride = matrices[i].packed.n()});
  }
  for (const int threads : {1, 3}) {
    for (auto& out : outputs) std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
    ThreadPool pool(threads);
    linear(pool, products);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(same_bits(outputs[i], expected[i])) << "product " << i;
    }
  }
}

// Inputs as quantised activations are: for FP4 most blocks are then summed in integers. Blocks of
// few and many bits, of one value and of none stand beside each other, and some rows leave the
// range in which scales may be taken out of the sum, or the bf16 numbers.
TEST(Linear, QuantisedInputsEqualTheDocumentedOrder) {
  test::Random random(20);
  ThreadPool pool(2);
  constexpr std::size_t kN = 90, kK = 512, kRows = 30;
  for (const Format format : {Format::kFp4, Format::kFp8}) {
    const KnownMatrix m = random_matrix(random, format, kN, kK);
    for (const float spread : {0.0f, 1.0f, 4.0f, 12.0f}) {
      std::vector<float> x = random.normals(kRows * kK);
      for (std::size_t i = 0; i < x.size(); ++i) {
        // Wider and wider ranges within a block, until 15 bits do not hold it.
        x[i] *= std::exp2(-spread * static_cast<float>(random.below(100)) / 99);
        if (i / 32 % 7 == 3) x[i] = 0;
        if (i / 32 % 7 == 5 && i % 32 != 9) x[i] = 0;
      }
      quantise_activation(pool, {.in = x.data(), .out = x.data(), .rows = kRows, .width = kK});
      for (const float extreme : {0.0f, 0x1p-70f, 0x1p60f, 0x1p-149f, 1.00390625f + 0x1p-9f}) {
        if (extreme != 0) x[kK + 77] = extreme;
        const std::vector<float> expected = in_documented_order(m, x, kRows);
        for (const Isa isa : available_isas()) {
          const IsaScope scope(isa);
          for (const std::size_t rows : {1, 2, 3, 4, 5, 13, 30}) {
            ASSERT_TRUE(
                same_bits(multiply(pool, m.packed, x, rows), std::span(expected).first(rows * kN)))
                << active_isa() << " " << name_of(format) << " spread " << spread << " extreme "
                << extreme << " rows " << rows;
          }
        }
      }
    }
  }
}

// Inputs that fit pairs of bf16, in lengths that leave part of a vector of them.
TEST(Linear, Bf16InputsOfAnyLengthEqualTheDocumentedOrder) {
  test::Random random(22);
  ThreadPool pool(2);
  constexpr std::size_t kN = 90, kRows = 13;
  for (const std::size_t k : {4, 28, 32, 36, 100, 676}) {
    const KnownMatrix m = random_matrix(random, Format::kFp8, kN, k);
    std::vector<float> x = random.normals(kRows * k);
    for (float& v : x) v = round_bf16(v);
    const std::vector<float> expected = in_documented_order(m, x, kRows);
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      for (const std::size_t rows : {1, 3, 13}) {
        EXPECT_TRUE(
            same_bits(multiply(pool, m.packed, x, rows), std::span(expected).first(rows * kN)))
            << active_isa() << " k " << k << " rows " << rows;
      }
    }
  }
}

// Sums at the bound up to which no partial sum can round, and beyond: full blocks of the largest
// values of one sign.
TEST(Linear, Fp4SumsAtTheBoundOfExactness) {
  ThreadPool pool(1);
  constexpr std::size_t kN = 16, kK = 32;
  const KnownMatrix m = fp4_matrix(kN, kK, std::vector<std::uint8_t>(kN * kK / 2, 0x77),
                                   std::vector<std::uint8_t>(kN, 127));
  for (const int largest : {16384, 21844, 21845, 21846, 32767}) {
    for (const int last : {1, 3, largest}) {
      std::vector<float> x(kK, static_cast<float>(largest));
      x.back() = static_cast<float>(last);
      const std::vector<float> expected = in_documented_order(m, x, 1);
      for (const Isa isa : available_isas()) {
        const IsaScope scope(isa);
        EXPECT_TRUE(same_bits(multiply(pool, m.packed, x, 1), expected)) << largest << " " << last;
      }
    }
  }
}

// The same bits from the published layout, at any alignment, as from the packed one.
TEST(Linear, InPlaceEqualsPacked) {
  test::Random random(21);
  ThreadPool pool(2);
  for (const Format format : kFormats) {
    for (const std::size_t n : {16, 50, 90}) {
      const std::size_t k = 672;
      const std::size_t row_bytes = PackedMatrix::row_bytes(format, k);
      std::vector<std::byte> codes(n * row_bytes + 1), scales(n * k / 32 + 1);
      for (std::size_t i = 1; i < codes.size(); ++i) {
        codes[i] = static_cast<std::byte>(random.below(256));
        // Not a NaN, and no exponent near the ends.
        if (format == Format::kFp8) codes[i] &= std::byte{0xbf};
        const std::size_t unit = PackedMatrix::unit_bytes(format);
        const bool exponent = (i - 1) % unit == unit - 1;
        if ((format == Format::kBf16 || format == Format::kF32) && exponent) {
          codes[i] = static_cast<std::byte>(0x3f | (random.below(2) << 7));
        }
      }
      for (auto& s : scales) s = static_cast<std::byte>(117 + random.below(8));
      // One panel's scales are found to be none that sums may be scaled by.
      if (n > 80) scales[1 + 35 * k / 32] = std::byte{5};
      PackedMatrix packed = PackedMatrix::zero(format, n, k);
      packed.pack_codes(0, packed.panels(), codes.data() + 1);
      PackedMatrix in_place =
          PackedMatrix::in_place(format, n, k, codes.data() + 1, scales.data() + 1);
      if (format == Format::kFp4) packed.pack_fp4_scales(0, packed.panels(), scales.data() + 1);
      if (format == Format::kFp8) {
        const std::vector<float> blocks((n + 127) / 128 * ((k + 127) / 128), 0x1p-5f);
        packed.set_fp8_scales(blocks);
        in_place.set_fp8_scales(blocks);
      }
      std::vector<float> x = random.normals(40 * k);
      // Rows of bf16 numbers and others.
      for (std::size_t i = 0; i < 20 * k; ++i) x[i] = round_bf16(x[i]);
      for (const Isa isa : available_isas()) {
        const IsaScope scope(isa);
        for (const std::size_t rows : {1, 3, 4, 5, 20, 40}) {
          EXPECT_TRUE(same_bits(multiply(pool, in_place, x, rows), multiply(pool, packed, x, rows)))
              << active_isa() << " " << name_of(format) << " n " << n << " rows " << rows;
        }
      }
    }
  }
}

// Scales of 2^-127, a subnormal float, and of 2^127, beside ordinary ones.
TEST(Linear, Fp4ScalesAtTheEndsOfTheRange) {
  test::Random random(17);
  ThreadPool pool(1);
  constexpr std::size_t kN = 20, kK = 64;
  for (const std::uint8_t scale : {0, 1, 254}) {
    std::vector<std::uint8_t> codes(kN * kK / 2);
    // Magnitudes 0, 0.5 and 1, so that the largest scale stays finite.
    for (auto& c : codes) {
      c = e2m1_pack(static_cast<std::uint8_t>(random.below(3) | random.below(2) << 3),
                    static_cast<std::uint8_t>(random.below(3) | random.below(2) << 3));
    }
    std::vector<std::uint8_t> scales(kN * kK / 32, scale);
    scales[1] = 127;
    const KnownMatrix m = fp4_matrix(kN, kK, codes, scales);
    const std::vector<float> x = random.normals(6 * kK, scale == 254 ? 0x1p-10 : 0x1p100);
    const std::vector<float> expected = in_documented_order(m, x, 6);
    ASSERT_TRUE(std::ranges::all_of(expected, [](float v) { return std::isfinite(v); }));
    ASSERT_TRUE(std::ranges::any_of(expected, [](float v) { return v != 0; }));
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      EXPECT_TRUE(same_bits(multiply(pool, m.packed, x, 6), expected)) << int{scale};
    }
  }
}

TEST(Linear, Fp8ScalesAtTheEndsOfTheRangeAndNotPowersOfTwo) {
  test::Random random(18);
  ThreadPool pool(1);
  constexpr std::size_t kN = 20, kK = 256;
  for (const float scale : {0x1p-127f, 0x1p-140f, 0x1p119f, 0x1p120f, 0x1p127f, 0.1f, 0.0f}) {
    std::vector<std::uint8_t> codes(kN * kK);
    // Magnitudes up to 1.
    for (auto& c : codes) {
      c = static_cast<std::uint8_t>(random.below(0x39) | random.below(2) << 7);
    }
    const KnownMatrix m = fp8_matrix(kN, kK, codes, {scale, 1.0f});
    const std::vector<float> x = random.normals(6 * kK, scale > 1 ? 0x1p-10 : 1);
    const std::vector<float> expected = in_documented_order(m, x, 6);
    ASSERT_TRUE(std::ranges::all_of(expected, [](float v) { return std::isfinite(v); }));
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      EXPECT_TRUE(same_bits(multiply(pool, m.packed, x, 6), expected)) << scale;
    }
  }
}

// Each code of each 8- and 4-bit format, alone in its row: the product with 1 is its value.
TEST(Linear, DecodesEveryCode) {
  ThreadPool pool(1);
  std::vector<std::uint8_t> codes8(256 * 128, 0), codes4(16 * 16, 0);
  for (std::size_t c = 0; c < 256; ++c) {
    codes8[c * 128 + c % 128] = static_cast<std::uint8_t>((c & 0x7f) == kE4m3Nan ? 0 : c);
  }
  for (std::size_t c = 0; c < 16; ++c) {
    codes4[c * 16 + c] = static_cast<std::uint8_t>(c % 2 == 0 ? c : c << 4);
  }
  const KnownMatrix matrices[] = {fp8_matrix(256, 128, codes8, {0.5f, 2.0f}),
                                  fp4_matrix(16, 32, codes4, std::vector<std::uint8_t>(16, 128))};
  for (const KnownMatrix& m : matrices) {
    const std::vector<float> ones(m.packed.k(), 1.0f);
    const std::vector<float> out = multiply(pool, m.packed, ones, 1);
    for (std::size_t row = 0; row < m.packed.n(); ++row) {
      float expected = 0;
      for (std::size_t i = 0; i < m.packed.k(); ++i) expected += m.values[row * m.packed.k() + i];
      EXPECT_EQ(out[row], expected) << row;
    }
  }
}

TEST(PackedMatrix, HoldsCodesAtTheirStoredWidth) {
  test::Random random(19);
  // Two panels of 16 rows for 17.
  EXPECT_EQ(random_matrix(random, Format::kFp4, 17, 64).packed.bytes(),
            32u * 64 / 2 + 32 * 64 / 32);
  EXPECT_EQ(random_matrix(random, Format::kFp8, 17, 130).packed.bytes(), 32u * 130 + 2 * 2 * 4);
  EXPECT_EQ(random_matrix(random, Format::kBf16, 17, 30).packed.bytes(), 32u * 30 * 2);
  EXPECT_EQ(random_matrix(random, Format::kF32, 17, 30).packed.bytes(), 32u * 30 * 4);
}

// Rows outside the range are neither read nor written, and the range may be empty.
TEST(Linear, ComputesTheRowsOfARangeAlone) {
  test::Random random(97);
  ThreadPool pool(2);
  for (const Format format : kFormats) {
    const KnownMatrix m = random_matrix(random, format, 48, 128);
    constexpr std::size_t kRows = 9;
    const std::vector<float> x = random.normals(kRows * 128);
    const std::vector<float> all = multiply(pool, m.packed, x, kRows);
    for (const auto& [begin, end] : {std::pair(0, 9), {2, 3}, {3, 9}, {4, 4}, {0, 0}}) {
      std::vector<float> masked = x, out(kRows * 48, -7.0f), expected = out;
      for (int r = 0; r < int{kRows}; ++r) {
        if (r >= begin && r < end) {
          std::copy_n(all.begin() + r * 48, 48, expected.begin() + r * 48);
        } else {
          std::fill_n(masked.begin() + r * 128, 128, std::numeric_limits<float>::quiet_NaN());
        }
      }
      const std::int32_t range[] = {begin, end};
      linear(pool, {.x = masked.data(),
                    .x_stride = 128,
                    .rows = kRows,
                    .row_range = range,
                    .weight = &m.packed,
                    .out = out.data(),
                    .out_stride = 48});
      EXPECT_TRUE(same_bits(out, expected)) << name_of(format) << " [" << begin << ", " << end;
    }
  }
}

}  // namespace
}  // namespace cupel
