// The vector helpers that every kernel is made of, against scalar formats and the documented trees.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/vector_probe.h"
#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/e4m3.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;

float tree_sum(const float* x) {
  float eight[8], four[4];
  for (int i = 0; i < 8; ++i) eight[i] = x[i] + x[i + 8];
  for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
  return (four[0] + four[2]) + (four[1] + four[3]);
}

TEST(Vector, SumsByTheDocumentedTree) {
  test::Random random(1);
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    for (int round = 0; round < 500; ++round) {
      const std::vector<float> x = random.normals(64, std::exp2(random.uniform(-8, 8)));
      float expected[4], out[4];
      for (std::size_t g = 0; g < 4; ++g) {
        expected[g] = tree_sum(x.data() + 16 * g);
        EXPECT_EQ(test::vector_sum(x.data() + 16 * g), expected[g]) << active_isa();
      }
      test::vector_sum_four(x.data(), out);
      EXPECT_TRUE(same_bits(out, expected)) << active_isa();
    }
  }
}

TEST(Vector, RoundsToBf16AsTheFormatDoes) {
  // The midpoint above each bf16 value, its neighbours, and the value itself.
  std::vector<float> in;
  for (std::uint32_t high = 0; high < 0x10000u; ++high) {
    if ((high & 0x7f80u) == 0x7f80u && (high & 0x7fu) != 0) continue;  // payloads of NaN differ
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      if (high % 0x8000u == 0x7f80u && low != 0) continue;
      in.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  in.push_back(std::numeric_limits<float>::quiet_NaN());
  while (in.size() % 16 != 0) in.push_back(0);
  std::vector<float> expected, out(in.size());
  for (const float x : in) expected.push_back(round_bf16(x));
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    test::vector_round_bf16(in.data(), out.data(), in.size());
    EXPECT_TRUE(same_bits(out, expected)) << active_isa();
  }
}

TEST(Vector, RoundsToE4m3AsTheFormatDoes) {
  std::vector<float> in;
  for (int code = 0; code < 0x7e; ++code) {
    const float a = e4m3_to_float(static_cast<std::uint8_t>(code));
    const float b = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (a + b) / 2;  // exact
    for (const float x : {a, std::nextafter(middle, a), middle, std::nextafter(middle, b), b}) {
      in.insert(in.end(), {x, -x});
    }
  }
  in.insert(in.end(), {0x1p-149f, -0x1p-149f, 0x1p-126f, -0.0f});
  while (in.size() % 16 != 0) in.push_back(0);
  std::vector<float> expected, out(in.size());
  for (const float x : in) expected.push_back(round_e4m3(x));
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    test::vector_round_e4m3(in.data(), out.data(), in.size());
    EXPECT_TRUE(same_bits(out, expected)) << active_isa();
  }
}

TEST(Vector, DecodesEveryCode) {
  std::vector<std::uint8_t> codes;
  for (int code = 0; code < 256; ++code) {
    const bool nan = (code & 0x7f) == kE4m3Nan;
    codes.push_back(static_cast<std::uint8_t>(nan ? 0 : code));
  }
  std::vector<std::uint16_t> halves;
  for (int bits = 0; bits < 0x10000; ++bits) halves.push_back(static_cast<std::uint16_t>(bits));
  std::vector<float> expected, out(codes.size()), expected_bf16, out_bf16(halves.size());
  for (const auto code : codes) expected.push_back(e4m3_to_float(code) * 0.1f);
  for (const auto bits : halves) expected_bf16.push_back(bf16_to_float(bits));
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    test::vector_decode_e4m3(codes.data(), 0.1f, out.data(), codes.size());
    EXPECT_TRUE(same_bits(out, expected)) << active_isa();
    test::vector_decode_bf16(halves.data(), out_bf16.data(), halves.size());
    EXPECT_TRUE(same_bits(out_bf16, expected_bf16)) << active_isa();
  }
}

}  // namespace
}  // namespace cupel
