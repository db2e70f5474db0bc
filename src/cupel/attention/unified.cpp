#include "cupel/attention/unified.h"

#include <algorithm>
#include <cstring>

#include "cupel/attention/kv_codec.h"
#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr std::size_t kFp8NopeRow = 512;
constexpr std::size_t kFp8RopeRow = 128;

std::size_t at(int slot) {
  return static_cast<std::size_t>(slot);
}

std::uint8_t* bytes(std::byte* p) {
  return reinterpret_cast<std::uint8_t*>(p);
}
const std::uint8_t* bytes(const std::byte* p) {
  return reinterpret_cast<const std::uint8_t*>(p);
}

std::size_t nope_row_bytes(UnifiedRowForm form) {
  switch (form) {
    case UnifiedRowForm::kBf16:
      return kKvDim * sizeof(std::uint16_t);
    case UnifiedRowForm::kFp8:
      return kFp8NopeRow;
    case UnifiedRowForm::kF32:
      return kKvDim * sizeof(float);
  }
  return 0;
}

}  // namespace

void RowTensor::reserve(std::size_t first, std::size_t count) {
  if (row_bytes_ == 0 || count == 0) return;
  const std::size_t last_slab = (first + count - 1) / kSlabRows;
  if (slabs_.size() <= last_slab) slabs_.resize(last_slab + 1);
  for (std::size_t s = first / kSlabRows; s <= last_slab; ++s) {
    if (!slabs_[s]) slabs_[s] = std::make_unique<std::byte[]>(kSlabRows * row_bytes_);
  }
}

std::byte* RowTensor::row(std::size_t number) {
  return slabs_[number / kSlabRows].get() + number % kSlabRows * row_bytes_;
}

const std::byte* RowTensor::row(std::size_t number) const {
  return slabs_[number / kSlabRows].get() + number % kSlabRows * row_bytes_;
}

UnifiedRows::UnifiedRows(UnifiedRowForm form, int ratio, int window)
    : form_(form),
      window_(static_cast<std::size_t>(window)),
      rows_per_block_(ratio == 0 ? 1 : 256 / static_cast<std::size_t>(ratio)),
      nope_(nope_row_bytes(form)),
      rope_(form == UnifiedRowForm::kFp8 ? kFp8RopeRow : 0) {}

void UnifiedRows::encode(const float* row, std::byte* record) const {
  switch (form_) {
    case UnifiedRowForm::kBf16:
      encode_kv_bf16(row, record);
      break;
    case UnifiedRowForm::kF32:
      std::memcpy(record, row, kKvDim * sizeof(float));
      break;
    case UnifiedRowForm::kFp8: {
      std::uint8_t scales[kKvTiles];
      encode_kv_fp8(row, bytes(record), scales, record + kFp8NopeRow);
      for (std::size_t t = 0; t < kKvTiles; ++t) {
        record[kNopeDim + 2 * t] = record[kNopeDim + 2 * t + 1] = std::byte{scales[t]};
      }
      std::fill(record + kNopeDim + 2 * kKvTiles, record + kFp8NopeRow, std::byte{0});
      break;
    }
  }
}

void UnifiedRows::decode(const std::byte* record, float* row) const {
  switch (form_) {
    case UnifiedRowForm::kBf16:
      decode_kv_bf16(record, row);
      break;
    case UnifiedRowForm::kF32:
      std::memcpy(row, record, kKvDim * sizeof(float));
      break;
    case UnifiedRowForm::kFp8: {
      std::uint8_t scales[kKvTiles];
      for (std::size_t t = 0; t < kKvTiles; ++t) scales[t] = bytes(record)[kNopeDim + 2 * t];
      decode_kv_fp8(bytes(record), scales, record + kFp8NopeRow, row);
      break;
    }
  }
}

void UnifiedRows::open(int slot) {
  if (at(slot) >= kMaxSlots) {
    throw InfrastructureError("attention backend unified",
                              "more than " + std::to_string(kMaxSlots) + " open sequences");
  }
  if (block_tables_.size() <= at(slot)) block_tables_.resize(at(slot) + 1);
  nope_.reserve(at(slot) * window_, window_);
  rope_.reserve(at(slot) * window_, window_);
  ++open_slots_;
}

void UnifiedRows::close(int slot) {
  release_blocks(slot);
  --open_slots_;
}

void UnifiedRows::release_blocks(int slot) {
  for (const int block : block_tables_[at(slot)]) blocks_.give_back(block);
  block_tables_[at(slot)].clear();
}

void UnifiedRows::copy(int from, int to) {
  for (std::size_t i = 0; i < window_; ++i) copy_row(at(from) * window_ + i, at(to) * window_ + i);
  release_blocks(to);
  const std::size_t count = block_tables_[at(from)].size() * rows_per_block_;
  reserve(to, count);
  for (std::size_t e = 0; e < count; ++e) {
    const auto entry = static_cast<std::int64_t>(e);
    copy_row(entry_number(from, entry), entry_number(to, entry));
  }
}

void UnifiedRows::reserve(int slot, std::size_t count) {
  auto& table = block_tables_[at(slot)];
  while (table.size() * rows_per_block_ < count) {
    table.push_back(blocks_.take());
    const std::size_t first = boundary() + static_cast<std::size_t>(table.back()) * rows_per_block_;
    nope_.reserve(first, rows_per_block_);
    rope_.reserve(first, rows_per_block_);
  }
}

std::size_t UnifiedRows::window_number(int slot, std::int64_t position) const {
  return at(slot) * window_ + static_cast<std::size_t>(position) % window_;
}

std::size_t UnifiedRows::entry_number(int slot, std::int64_t entry) const {
  const auto e = static_cast<std::size_t>(entry);
  const auto block = static_cast<std::size_t>(block_tables_[at(slot)][e / rows_per_block_]);
  return boundary() + block * rows_per_block_ + e % rows_per_block_;
}

void UnifiedRows::write(std::size_t number, const std::byte* record) {
  std::memcpy(nope_.row(number), record, nope_.row_bytes());
  if (rope_.row_bytes() > 0) {
    std::memcpy(rope_.row(number), record + nope_.row_bytes(), rope_.row_bytes());
  }
}

void UnifiedRows::read(std::size_t number, std::byte* record) const {
  std::memcpy(record, nope_.row(number), nope_.row_bytes());
  if (rope_.row_bytes() > 0) {
    std::memcpy(record + nope_.row_bytes(), rope_.row(number), rope_.row_bytes());
  }
}

void UnifiedRows::copy_row(std::size_t from, std::size_t to) {
  std::memcpy(nope_.row(to), nope_.row(from), nope_.row_bytes());
  if (rope_.row_bytes() > 0) std::memcpy(rope_.row(to), rope_.row(from), rope_.row_bytes());
}

void UnifiedRows::write_window(int slot, std::int64_t position, const std::byte* record) {
  write(window_number(slot, position), record);
}
void UnifiedRows::read_window(int slot, std::int64_t position, std::byte* record) const {
  read(window_number(slot, position), record);
}
void UnifiedRows::write_entry(int slot, std::int64_t entry, const std::byte* record) {
  write(entry_number(slot, entry), record);
}
void UnifiedRows::read_entry(int slot, std::int64_t entry, std::byte* record) const {
  read(entry_number(slot, entry), record);
}

std::size_t UnifiedRows::bytes_in_use() const {
  return (open_slots_ * window_ + blocks_.in_use() * rows_per_block_) * record_bytes();
}

UnifiedBackend::UnifiedBackend(KvDtype dtype, Numerics numerics, const ModelConfig& config)
    : StagedBackend(numerics, config, IndexForm::kFp8) {
  UnifiedRowForm form = UnifiedRowForm::kBf16;
  if (dtype == KvDtype::kFp8E4m3) {
    form = UnifiedRowForm::kFp8;
  } else if (dtype == KvDtype::kAuto && numerics == Numerics::kFloat32) {
    form = UnifiedRowForm::kF32;
  }
  for (int l = 0; l < config.layers; ++l) {
    set_rows(l, std::make_unique<UnifiedRows>(form, config.ratio(l), config.window));
  }
  window_size_ = config.window;
}

void UnifiedBackend::list_keys(const QueryKeys& keys, std::vector<const float*>& list) const {
  // Ring order: the position with the smallest slot first.
  const std::int64_t first = keys.window_first, last = keys.position;
  const std::int64_t wrap = last / window_size_ * window_size_;  // the position in slot 0
  const std::int64_t split = std::max(first, wrap);
  for (std::int64_t p = split; p <= last; ++p) {
    list.push_back(keys.window[static_cast<std::size_t>(p - first)]);
  }
  for (std::int64_t p = first; p < split; ++p) {
    list.push_back(keys.window[static_cast<std::size_t>(p - first)]);
  }
  list.insert(list.end(), keys.entries.begin(), keys.entries.end());
}

void UnifiedBackend::attend_row(const AttendRowParams& params) const {
  attend_row_unified(params);
}

}  // namespace cupel
