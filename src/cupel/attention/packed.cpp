#include "cupel/attention/packed.h"

#include <cstring>

#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

std::uint8_t* bytes(std::byte* p) {
  return reinterpret_cast<std::uint8_t*>(p);
}
const std::uint8_t* bytes(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
}

// A full page covers 256 tokens.
std::size_t entries_of_ratio(int ratio) {
  return ratio == 0 ? 1 : 256 / static_cast<std::size_t>(ratio);
}

void write_record(std::byte* page, std::size_t per_page, std::size_t i, const std::byte* record) {
  std::memcpy(page + i * PackedRows::kValueRecord, record, PackedRows::kValueRecord);
  std::memcpy(page + per_page * PackedRows::kValueRecord + i * PackedRows::kScaleRecord,
              record + PackedRows::kValueRecord, PackedRows::kScaleRecord);
}

void read_record(const std::byte* page, std::size_t per_page, std::size_t i, std::byte* record) {
  std::memcpy(record, page + i * PackedRows::kValueRecord, PackedRows::kValueRecord);
  std::memcpy(record + PackedRows::kValueRecord,
              page + per_page * PackedRows::kValueRecord + i * PackedRows::kScaleRecord,
              PackedRows::kScaleRecord);
}

}  // namespace

std::size_t PackedRows::page_bytes(std::size_t entries_per_page) {
  const std::size_t raw = entries_per_page * (kValueRecord + kScaleRecord);
  return (raw + kValueRecord - 1) / kValueRecord * kValueRecord;
}

PackedRows::PackedRows(int ratio, int window)
    : window_(static_cast<std::size_t>(window)),
      entries_per_page_(entries_of_ratio(ratio)),
      window_pool_(page_bytes(window_)),
      entry_pool_(page_bytes(entries_per_page_)) {}

void PackedRows::encode(const float* row, std::byte* record) const {
  encode_kv_fp8(row, bytes(record), bytes(record) + kValueRecord, record + kNopeDim);
  record[kValueRecord + kKvTiles] = std::byte{0};
}

void PackedRows::decode(const std::byte* record, float* row) const {
  decode_kv_fp8(bytes(record), bytes(record) + kValueRecord, record + kNopeDim, row);
}

void PackedRows::open(int slot) {
  if (slots_.size() <= at(slot)) slots_.resize(at(slot) + 1);
  slots_[at(slot)].window_page = window_pool_.allocate();
}

void PackedRows::close(int slot) {
  window_pool_.release(slots_[at(slot)].window_page);
  slots_[at(slot)].window_page = -1;
  slots_[at(slot)].entries.release(entry_pool_);
}

void PackedRows::copy(int from, int to) {
  std::memcpy(window_pool_.page(slots_[at(to)].window_page),
              window_pool_.page(slots_[at(from)].window_page), window_pool_.page_bytes());
  slots_[at(to)].entries.copy_from(entry_pool_, slots_[at(from)].entries);
}

void PackedRows::reserve(int slot, std::size_t count) {
  slots_[at(slot)].entries.reserve(entry_pool_, count, entries_per_page_);
}

void PackedRows::write_window(int slot, std::int64_t position, const std::byte* record) {
  write_record(window_pool_.page(slots_[at(slot)].window_page), window_,
               static_cast<std::size_t>(position) % window_, record);
}

void PackedRows::read_window(int slot, std::int64_t position, std::byte* record) const {
  read_record(window_page(slot), window_, static_cast<std::size_t>(position) % window_, record);
}

void PackedRows::write_entry(int slot, std::int64_t entry, const std::byte* record) {
  const auto e = static_cast<std::size_t>(entry);
  write_record(entry_pool_.page(slots_[at(slot)].entries.page_of(e, entries_per_page_)),
               entries_per_page_, e % entries_per_page_, record);
}

void PackedRows::read_entry(int slot, std::int64_t entry, std::byte* record) const {
  read_record(entry_page(slot, entry), entries_per_page_,
              static_cast<std::size_t>(entry) % entries_per_page_, record);
}

std::size_t PackedRows::bytes_in_use() const {
  return window_pool_.pages_in_use() * window_pool_.page_bytes() +
         entry_pool_.pages_in_use() * entry_pool_.page_bytes();
}

const std::byte* PackedRows::window_page(int slot) const {
  return window_pool_.page(slots_[at(slot)].window_page);
}

const std::byte* PackedRows::entry_page(int slot, std::int64_t entry) const {
  return entry_pool_.page(
      slots_[at(slot)].entries.page_of(static_cast<std::size_t>(entry), entries_per_page_));
}

PackedBackend::PackedBackend(Numerics numerics, const ModelConfig& config)
    : StagedBackend(numerics, config, IndexForm::kFp8) {
  for (int l = 0; l < config.layers; ++l) {
    set_rows(l, std::make_unique<PackedRows>(config.ratio(l), config.window));
  }
}

void PackedBackend::list_keys(const QueryKeys& keys, std::vector<const float*>& list) const {
  list.insert(list.end(), keys.window.rbegin(), keys.window.rend());
  list.insert(list.end(), keys.entries.begin(), keys.entries.end());
}

void PackedBackend::attend_row(const AttendRowParams& params) const {
  attend_row_packed(params);
}

}  // namespace cupel
