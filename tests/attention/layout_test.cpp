// Byte layouts of spec/serving-stack.md A.2 and A.3, byte by byte.
#include <algorithm>
#include <cstring>
#include <vector>

#include "support/random.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

#include "cupel/attention/kv_codec.h"
#include "cupel/attention/packed.h"
#include "cupel/attention/paged_index_keys.h"
#include "cupel/attention/unified.h"
#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

using Record = std::vector<std::byte>;

// A row whose stored bytes are known without a codec. Tile t has the scale 2^(t - 3 + shift); its
// elements are 448, 1, -0.5, 2^-9 and 0 times that, in turn: codes 7e, 38, b0, 01, 00. Rope element
// i is 1 + i / 64: bf16 bits 3f80 + 2 i.
struct KnownRow {
  std::vector<float> row = std::vector<float>(kKvDim);
  int shift;

  explicit KnownRow(int shift_in) : shift(shift_in) {
    constexpr float kValues[] = {448.0f, 1.0f, -0.5f, 0x1p-9f, 0.0f};
    for (std::size_t i = 0; i < kNopeDim; ++i) {
      row[i] = std::ldexp(kValues[i % kKvTile % 5], static_cast<int>(i / kKvTile) - 3 + shift);
    }
    for (std::size_t i = 0; i < kRopeDim; ++i) row[kNopeDim + i] = 1 + static_cast<float>(i) / 64;
  }

  static std::uint8_t code(std::size_t i) {
    constexpr std::uint8_t kCodes[] = {0x7e, 0x38, 0xb0, 0x01, 0x00};
    return kCodes[i % kKvTile % 5];
  }
  std::uint8_t scale(std::size_t tile) const {
    return static_cast<std::uint8_t>(127 + static_cast<int>(tile) - 3 + shift);
  }
  static std::uint16_t rope_bits(std::size_t i) {
    return static_cast<std::uint16_t>(0x3f80 + 2 * i);
  }
};

Record record_of(const RowStore& store, const float* row) {
  Record record(store.record_bytes(), std::byte{0xee});
  store.encode(row, record.data());
  return record;
}

std::uint8_t byte_at(const std::byte* p) {
  return std::to_integer<std::uint8_t>(*p);
}

void expect_nope(const std::byte* at) {
  for (std::size_t i = 0; i < kNopeDim; ++i) EXPECT_EQ(byte_at(at + i), KnownRow::code(i)) << i;
}

void expect_rope(const std::byte* at) {
  for (std::size_t i = 0; i < kRopeDim; ++i) {
    // Little endian.
    EXPECT_EQ(byte_at(at + 2 * i), KnownRow::rope_bits(i) & 0xff) << i;
    EXPECT_EQ(byte_at(at + 2 * i + 1), KnownRow::rope_bits(i) >> 8) << i;
  }
}

TEST(PackedLayout, PagesHaveThePublishedSizes) {
  EXPECT_EQ(PackedRows::page_bytes(128), 74880u);
  EXPECT_EQ(PackedRows::page_bytes(64), 37440u);
  EXPECT_EQ(PackedRows::page_bytes(2), 1728u);
  EXPECT_EQ(PackedRows(4, 128).entries_per_page(), 64u);
  EXPECT_EQ(PackedRows(128, 128).entries_per_page(), 2u);
  EXPECT_EQ(PackedRows(4, 128).record_bytes(), 584u);
}

void expect_packed_entry(const std::byte* page, std::size_t per_page, std::size_t i,
                         const KnownRow& known) {
  expect_nope(page + i * 576);
  expect_rope(page + i * 576 + 448);
  const std::byte* scales = page + per_page * 576 + i * 8;
  for (std::size_t t = 0; t < 7; ++t) EXPECT_EQ(byte_at(scales + t), known.scale(t)) << t;
  EXPECT_EQ(byte_at(scales + 7), 0);
}

TEST(PackedLayout, WindowRowLiesAtItsPositionModulo128) {
  PackedRows rows(0, 128);
  rows.open(0);
  rows.open(1);
  for (const int position : {0, 1, 127, 128, 1000}) {
    const KnownRow known(position % 50);
    rows.write_window(1, position, record_of(rows, known.row.data()).data());
    expect_packed_entry(rows.window_page(1), 128, static_cast<std::size_t>(position) % 128, known);
  }
  // Nothing else was touched: not the other slot, not a place never written.
  for (std::size_t b = 0; b < 74880; ++b) ASSERT_EQ(byte_at(rows.window_page(0) + b), 0) << b;
  for (std::size_t b = 0; b < 576; ++b) ASSERT_EQ(byte_at(rows.window_page(1) + 2 * 576 + b), 0);
}

TEST(PackedLayout, EntryLiesInItsPage) {
  for (const int ratio : {4, 128}) {
    PackedRows rows(ratio, 128);
    const std::size_t per_page = rows.entries_per_page();
    rows.open(0);
    rows.open(1);
    rows.reserve(0, 1);
    rows.reserve(1, 2 * per_page + 1);
    for (const std::size_t entry : {std::size_t{0}, per_page - 1, per_page, 2 * per_page}) {
      const KnownRow known(static_cast<int>(entry % 40));
      const auto e = static_cast<std::int64_t>(entry);
      rows.write_entry(1, e, record_of(rows, known.row.data()).data());
      expect_packed_entry(rows.entry_page(1, e), per_page, entry % per_page, known);
    }
    EXPECT_EQ(rows.entry_page(1, 0), rows.entry_page(1, static_cast<std::int64_t>(per_page) - 1));
    EXPECT_NE(rows.entry_page(1, 0), rows.entry_page(1, static_cast<std::int64_t>(per_page)));
    EXPECT_NE(rows.entry_page(1, 0), rows.entry_page(0, 0));
  }
}

TEST(UnifiedLayout, Bf16RowIsTheRawRow) {
  UnifiedRows rows(UnifiedRowForm::kBf16, 4, 128);
  EXPECT_EQ(rows.record_bytes(), 1024u);
  EXPECT_EQ(rows.nope().element_bytes(), 1024u);
  test::Random random(131);
  const std::vector<float> row = random.bf16_normals(kKvDim);
  rows.open(0);
  rows.write_window(0, 130, record_of(rows, row.data()).data());
  const std::byte* stored = rows.nope().at(2);
  for (std::size_t i = 0; i < kKvDim; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, stored + 2 * i, sizeof bits);
    EXPECT_EQ(bits, bf16_from_float(row[i])) << i;
  }
}

void expect_unified_fp8(const UnifiedRows& rows, std::size_t number, const KnownRow& known) {
  const std::byte* nope = rows.nope().at(number);
  expect_nope(nope);
  for (std::size_t t = 0; t < 7; ++t) {
    EXPECT_EQ(byte_at(nope + 448 + 2 * t), known.scale(t)) << t;
    EXPECT_EQ(byte_at(nope + 449 + 2 * t), known.scale(t)) << t;
  }
  for (std::size_t b = 462; b < 512; ++b) EXPECT_EQ(byte_at(nope + b), 0) << b;
  expect_rope(rows.rope().at(number));
}

TEST(UnifiedLayout, Fp8RowIsANopeRowAndARopeRowOfOneNumber) {
  UnifiedRows rows(UnifiedRowForm::kFp8, 128, 128);
  EXPECT_EQ(rows.record_bytes(), 640u);
  EXPECT_EQ(rows.nope().element_bytes(), 512u);
  EXPECT_EQ(rows.rope().element_bytes(), 128u);
  rows.open(0);
  rows.open(1);
  const KnownRow in_window(5), in_entry(9);
  rows.write_window(1, 259, record_of(rows, in_window.row.data()).data());
  expect_unified_fp8(rows, 128 + 3, in_window);
  rows.reserve(1, 3);
  rows.write_entry(1, 2, record_of(rows, in_entry.row.data()).data());
  expect_unified_fp8(rows, rows.entry_number(1, 2), in_entry);
}

TEST(UnifiedLayout, RowNumbersAreRingAndBlockTable) {
  for (const int ratio : {4, 128}) {
    UnifiedRows rows(UnifiedRowForm::kBf16, ratio, 128);
    const std::size_t per_block = 256 / static_cast<std::size_t>(ratio);
    for (const int slot : {0, 1, 2}) {
      rows.open(slot);
      for (const std::int64_t position : {0, 1, 127, 128, 129, 1000000}) {
        EXPECT_EQ(rows.window_number(slot, position),
                  static_cast<std::size_t>(slot) * 128 + static_cast<std::size_t>(position) % 128);
      }
    }
    // Blocks in the order of demand: 0 to slot 1, 1 to slot 2, 2 and 3 to slot 1.
    rows.reserve(1, 1);
    rows.reserve(2, per_block);
    rows.reserve(1, 2 * per_block + 1);
    const std::vector<std::size_t> blocks_of_1 = {0, 2, 3};
    for (std::size_t e = 0; e < 3 * per_block; ++e) {
      EXPECT_EQ(rows.entry_number(1, static_cast<std::int64_t>(e)),
                rows.boundary() + blocks_of_1[e / per_block] * per_block + e % per_block);
    }
    EXPECT_EQ(rows.entry_number(2, 0), rows.boundary() + per_block);
    // Compressed rows start beyond the ring of every possible slot.
    EXPECT_EQ(rows.boundary() % 128, 0u);
    EXPECT_GT(rows.boundary(), rows.window_number(2, 127));
    // A closed slot gives its blocks to the next, lowest first.
    rows.close(1);
    rows.reserve(2, per_block + 1);
    EXPECT_EQ(rows.entry_number(2, static_cast<std::int64_t>(per_block)), rows.boundary());
  }
}

// Records of every place of two slots come back as written, after all were written.
template <typename Rows>
void expect_round_trip(Rows& rows) {
  test::Random random(132);
  std::vector<Record> records;
  const auto next = [&] {
    records.push_back(record_of(rows, random.normals(kKvDim).data()));
    return records.back().data();
  };
  for (const int slot : {0, 1}) rows.open(slot);
  for (std::int64_t i = 0; i < 150; ++i) {
    for (const int slot : {0, 1}) {
      rows.reserve(slot, static_cast<std::size_t>(i + 1));
      rows.write_window(slot, 1000 + i, next());
      rows.write_entry(slot, i, next());
    }
  }
  Record out(rows.record_bytes());
  for (std::size_t i = 0; i < 150; ++i) {
    for (const int slot : {0, 1}) {
      const std::size_t at = 4 * i + 2 * static_cast<std::size_t>(slot);
      if (i >= 150 - 128) {
        rows.read_window(slot, 1000 + static_cast<std::int64_t>(i), out.data());
        EXPECT_EQ(out, records[at]) << slot << " " << i;
      }
      rows.read_entry(slot, static_cast<std::int64_t>(i), out.data());
      EXPECT_EQ(out, records[at + 1]) << slot << " " << i;
    }
  }
}

TEST(Layouts, EveryRecordComesBack) {
  for (const int ratio : {4, 128}) {
    PackedRows packed(ratio, 128);
    expect_round_trip(packed);
    for (const auto form : {UnifiedRowForm::kBf16, UnifiedRowForm::kFp8, UnifiedRowForm::kF32}) {
      UnifiedRows unified(form, ratio, 128);
      expect_round_trip(unified);
    }
  }
}

TEST(IndexKeyLayout, PageIsSixtyFourValueRecordsThenScales) {
  PagedIndexKeys keys(4);
  EXPECT_EQ(keys.page_bytes(), 64u * 132);
  keys.open(0);
  keys.reserve(0, 65);
  EXPECT_EQ(keys.bytes_in_use(), 2u * 64 * 132);
  for (const std::size_t entry : {0, 5, 63, 64}) {
    // amax 448 * 2^e: the scale is 2^e, the codes are those of 448, 1 and -0.5.
    const int exponent = static_cast<int>(entry) - 10;
    std::vector<float> key(kIndexDim);
    for (std::size_t i = 0; i < kIndexDim; ++i) {
      key[i] = std::ldexp(i % 3 == 0 ? 448.0f : i % 3 == 1 ? 1.0f : -0.5f, exponent);
    }
    keys.store(0, entry, key.data());
    const std::byte* page = keys.page(0, entry);
    constexpr std::uint8_t kCodes[] = {0x7e, 0x38, 0xb0};
    for (std::size_t i = 0; i < kIndexDim; ++i) {
      EXPECT_EQ(byte_at(page + entry % 64 * 128 + i), kCodes[i % 3]) << entry << " " << i;
    }
    float scale = 0;
    std::memcpy(&scale, page + 64 * 128 + entry % 64 * 4, sizeof scale);
    EXPECT_EQ(scale, std::ldexp(1.0f, exponent));
  }
  EXPECT_EQ(keys.page(0, 0), keys.page(0, 63));
  EXPECT_NE(keys.page(0, 0), keys.page(0, 64));
}

}  // namespace
}  // namespace cupel
