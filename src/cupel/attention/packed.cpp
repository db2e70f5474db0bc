#include "cupel/attention/packed.h"

#include <cstring>

#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

std::uint8_t* bytes(std::byte* p) {
  return reinterpret_cast<std::uint8_t*>(p);
}
const std::uint8_t* bytes(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
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
    : PagedRows(page_bytes(static_cast<std::size_t>(window)), page_bytes(entries_of_ratio(ratio)),
                entries_of_ratio(ratio)),
      window_(static_cast<std::size_t>(window)) {}

void PackedRows::encode(const float* row, std::byte* record) const {
  encode_kv_fp8(row, bytes(record), bytes(record) + kValueRecord, record + kNopeDim);
  record[kValueRecord + kKvTiles] = std::byte{0};
}

void PackedRows::decode(const std::byte* record, float* row) const {
  decode_kv_fp8(bytes(record), bytes(record) + kValueRecord, record + kNopeDim, row);
}

void PackedRows::write_window(int slot, std::int64_t position, const std::byte* record) {
  write_record(writable_window(slot), window_, static_cast<std::size_t>(position) % window_,
               record);
}

void PackedRows::read_window(int slot, std::int64_t position, std::byte* record) const {
  read_record(window_page(slot), window_, static_cast<std::size_t>(position) % window_, record);
}

void PackedRows::write_entry(int slot, std::int64_t entry, const std::byte* record) {
  write_record(writable_entry_page(slot, entry), entries_per_page(), place_in_page(entry), record);
}

void PackedRows::read_entry(int slot, std::int64_t entry, std::byte* record) const {
  read_record(entry_page(slot, entry), entries_per_page(), place_in_page(entry), record);
}

PackedBackend::PackedBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config)
    : StagedBackend(pool, numerics, config, IndexForm::kFp8) {
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
