#include "cupel/attention/unified.h"

#include <algorithm>
#include <cstring>

#include "cupel/attention/kv_codec.h"
#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr std::size_t kFp8NopeRow = 512;
constexpr std::size_t kFp8RopeRow = 128;
constexpr std::size_t kSlabRows = 1024;

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

UnifiedRows::UnifiedRows(UnifiedRowForm form, int ratio, int window)
    : form_(form),
      window_(static_cast<std::size_t>(window)),
      rows_per_block_(ratio == 0 ? 1 : 256 / static_cast<std::size_t>(ratio)),
      nope_(nope_row_bytes(form), kSlabRows),
      rope_(form == UnifiedRowForm::kFp8 ? kFp8RopeRow : 0, kSlabRows),
      blocks_(*this) {}

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
  acquire(at(slot) * window_, window_);
  ++open_slots_;
}

void UnifiedRows::close(int slot) {
  block_tables_[at(slot)].release(blocks_);
  release(at(slot) * window_, window_);
  --open_slots_;
}

void UnifiedRows::fork(int from, int to, std::size_t entries) {
  copy_rows(at(from) * window_, at(to) * window_, window_);
  block_tables_[at(to)].fork_from(blocks_, block_tables_[at(from)], entries, rows_per_block_);
}

void UnifiedRows::reserve(int slot, std::size_t count) {
  block_tables_[at(slot)].reserve(blocks_, count, rows_per_block_);
}

int UnifiedRows::Blocks::allocate() {
  const int block = numbers_.take();
  rows_.acquire(first_row(block), rows_.rows_per_block_);
  return block;
}

void UnifiedRows::Blocks::release(int block) {
  if (numbers_.drop(block)) rows_.release(first_row(block), rows_.rows_per_block_);
}

void UnifiedRows::Blocks::copy(int from, int to) {
  rows_.copy_rows(first_row(from), first_row(to), rows_.rows_per_block_);
}

std::size_t UnifiedRows::Blocks::first_row(int block) const {
  return rows_.boundary() + static_cast<std::size_t>(block) * rows_.rows_per_block_;
}

void UnifiedRows::acquire(std::size_t first, std::size_t count) {
  nope_.acquire(first, count);
  rope_.acquire(first, count);
}

void UnifiedRows::release(std::size_t first, std::size_t count) {
  nope_.release(first, count);
  rope_.release(first, count);
}

void UnifiedRows::copy_rows(std::size_t from, std::size_t to, std::size_t count) {
  for (SlabMemory* rows : {&nope_, &rope_}) {
    for (std::size_t i = 0; i < count && rows->element_bytes() > 0; ++i) {
      std::memcpy(rows->at(to + i), rows->at(from + i), rows->element_bytes());
    }
  }
}

std::size_t UnifiedRows::window_number(int slot, std::int64_t position) const {
  return at(slot) * window_ + static_cast<std::size_t>(position) % window_;
}

std::size_t UnifiedRows::entry_number(int slot, std::int64_t entry) const {
  const auto e = static_cast<std::size_t>(entry);
  const int block = block_tables_[at(slot)].page_of(e, rows_per_block_);
  return blocks_.first_row(block) + e % rows_per_block_;
}

void UnifiedRows::write(std::size_t number, const std::byte* record) {
  std::memcpy(nope_.at(number), record, nope_.element_bytes());
  if (rope_.element_bytes() > 0) {
    std::memcpy(rope_.at(number), record + nope_.element_bytes(), rope_.element_bytes());
  }
}

void UnifiedRows::read(std::size_t number, std::byte* record) const {
  std::memcpy(record, nope_.at(number), nope_.element_bytes());
  if (rope_.element_bytes() > 0) {
    std::memcpy(record + nope_.element_bytes(), rope_.at(number), rope_.element_bytes());
  }
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
  return (open_slots_ * window_ + blocks_.numbers().in_use() * rows_per_block_) * record_bytes();
}

std::size_t UnifiedRows::sequence_bytes(std::size_t entries) const {
  return (window_ + pages_for(entries, rows_per_block_) * rows_per_block_) * record_bytes();
}

bool UnifiedRows::owners_agree() const {
  std::vector<int> counted;
  for (const PageTable& table : block_tables_) table.count_owners(counted);
  return blocks_.numbers().agrees(counted);
}

UnifiedBackend::UnifiedBackend(ThreadPool& pool, KvDtype dtype, Numerics numerics,
                               const ModelConfig& config)
    : StagedBackend(pool, numerics, config, IndexForm::kFp8) {
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
