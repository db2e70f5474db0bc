// The vector codecs of stored rows against the scalar quantisers of formats/.
#include "cupel/attention/kv_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support/isa_scope.h"
#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/quantise.h"

namespace cupel {
namespace {

using test::available_isas;
using test::IsaScope;
using test::same_bits;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows of `width`: random ones of uneven size; all bf16 values in order, their NaN groups included;
// all bf16 values up to 448 beside 448; and one broken element at each place of a tile in turn.
std::vector<Floats> rows_of(std::size_t width) {
  test::Random random(121);
  std::vector<Floats> rows;
  for (int i = 0; i < 300; ++i) rows.push_back(random.uneven(width));
  for (int i = 0; i < 100; ++i) rows.push_back(random.normals(width));  // not bf16
  Floats flat;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    flat.push_back(bf16_to_float(static_cast<std::uint16_t>(bits)));
  }
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(bits));
    if (std::fabs(value) <= 448.0f) flat.push_back(value);
    if (flat.size() % 32 == 31) flat.push_back(448.0f);
  }
  for (std::size_t at = 0; at + width <= flat.size(); at += width) {
    rows.emplace_back(flat.data() + at, flat.data() + at + width);
  }
  for (std::size_t at = 0; at < 64; ++at) {
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
      rows.push_back(random.normals(width));
      rows.back()[64 + at] = bad;
    }
  }
  return rows;
}

Floats nope_of(const Floats& row) {
  return {row.data(), row.data() + kNopeDim};
}

TEST(KvCodec, Fp8EqualsTheFormat) {
  for (const Floats& row : rows_of(kKvDim)) {
    Bytes nope(kNopeDim), scales(kKvTiles);
    encode_e4m3(nope_of(row), kKvTile, nope, scales);
    Floats decoded(kNopeDim), faked = nope_of(row);
    decode_e4m3(nope, scales, kKvTile, decoded);
    fake_quantise_kv(std::span(faked));
    for (std::size_t i = 0; i < kRopeDim; ++i) {
      decoded.push_back(round_bf16(row[kNopeDim + i]));
      faked.push_back(row[kNopeDim + i]);
    }
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      Bytes own_nope(kNopeDim), own_scales(kKvTiles);
      std::byte rope[2 * kRopeDim + 1];
      encode_kv_fp8(row.data(), own_nope.data(), own_scales.data(), rope + 1);  // any alignment
      ASSERT_EQ(own_nope, nope) << active_isa();
      ASSERT_EQ(own_scales, scales) << active_isa();
      Floats out(kKvDim), in_place = row;
      decode_kv_fp8(own_nope.data(), own_scales.data(), rope + 1, out.data());
      ASSERT_TRUE(same_bits(out, decoded)) << active_isa();
      fake_quantise_kv(row.data(), out.data());
      ASSERT_TRUE(same_bits(out, faked)) << active_isa();
      fake_quantise_kv(in_place.data(), in_place.data());
      ASSERT_TRUE(same_bits(in_place, faked)) << active_isa();
    }
  }
}

// Every scale byte with every code, the largest scales included.
TEST(KvCodec, Fp8DecodesEveryCodeWithEveryScale) {
  for (const Isa isa : available_isas()) {
    const IsaScope scope(isa);
    for (int scale = 0; scale < 256; ++scale) {
      for (int half = 0; half < 2; ++half) {
        Bytes nope(kNopeDim);
        for (std::size_t i = 0; i < kNopeDim; ++i) {
          nope[i] = static_cast<std::uint8_t>(128 * half + static_cast<int>(i % 127));
        }
        const Bytes scales(kKvTiles, static_cast<std::uint8_t>(scale));
        const std::byte rope[2 * kRopeDim] = {};
        Floats out(kKvDim), expected(kNopeDim);
        decode_kv_fp8(nope.data(), scales.data(), rope, out.data());
        decode_e4m3(nope, scales, kKvTile, expected);
        ASSERT_TRUE(same_bits(std::span(out).first(kNopeDim), expected)) << scale;
      }
    }
  }
}

TEST(KvCodec, Bf16IsTheRoundedRowAndRoundTrips) {
  for (const Floats& row : rows_of(kKvDim)) {
    Floats expected;
    for (const float v : row) expected.push_back(round_bf16(v));
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      std::byte bytes[2 * kKvDim + 1];
      encode_kv_bf16(row.data(), bytes + 1);
      Floats out(kKvDim);
      decode_kv_bf16(bytes + 1, out.data());
      ASSERT_TRUE(same_bits(out, expected)) << active_isa();
      for (std::size_t i = 0; i < kKvDim; ++i) {
        std::uint16_t bits = 0;
        std::memcpy(&bits, bytes + 1 + 2 * i, sizeof bits);
        if (!std::isnan(row[i])) {
          ASSERT_EQ(bits, bf16_from_float(row[i]));
        }
      }
    }
  }
}

TEST(KvCodec, IndexFp8EqualsTheFormat) {
  for (const Floats& row : rows_of(kIndexDim)) {
    Bytes codes(kIndexDim);
    const float scale = encode_index_key(row, codes);
    Floats decoded(kIndexDim);
    decode_index_key(codes, 1.0f, decoded);
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      Bytes own(kIndexDim);
      float own_scale = 0;
      encode_index_fp8(row.data(), own.data(), &own_scale);
      ASSERT_EQ(own, codes) << active_isa();
      ASSERT_TRUE(same_bits(own_scale, scale)) << active_isa();
      if (!std::isfinite(scale)) continue;  // the codes mean nothing
      Floats out(kIndexDim);
      decode_index_fp8(own.data(), out.data());
      ASSERT_TRUE(same_bits(out, decoded)) << active_isa();
    }
  }
}

TEST(KvCodec, IndexFp4EqualsTheFormat) {
  std::vector<Floats> rows = rows_of(kIndexDim);
  // Down to the smallest scales.
  for (const double sigma : {0x1p-149, 0x1p-130, 0x1p-126, 0x1p-120, 0x1p120}) {
    test::Random random(122);
    rows.push_back(random.normals(kIndexDim, sigma));
  }
  for (const Floats& row : rows) {
    Floats expected = row;
    fake_quantise_indexer(expected);
    for (const Isa isa : available_isas()) {
      const IsaScope scope(isa);
      Floats out(kIndexDim), in_place = row;
      fake_quantise_index_fp4(row.data(), out.data());
      ASSERT_TRUE(same_bits(out, expected)) << active_isa();
      fake_quantise_index_fp4(in_place.data(), in_place.data());
      ASSERT_TRUE(same_bits(in_place, expected)) << active_isa();
    }
  }
}

}  // namespace
}  // namespace cupel
