#include "cupel/attention/reference.h"

#include <algorithm>
#include <cstring>

#include "cupel/attention/kv_codec.h"

namespace cupel {
namespace {

// Rows of fp32. With numerics float32 they are kept as they come.
class FloatRows final : public RowStore {
 public:
  FloatRows(bool quantise, int window) : quantise_(quantise), window_(window) {}

  std::size_t record_bytes() const override { return kRecord; }
  void encode(const float* row, std::byte* record) const override {
    float stored[kKvDim];
    if (quantise_) {
      fake_quantise_kv(row, stored);
      row = stored;
    }
    std::memcpy(record, row, kRecord);
  }
  void decode(const std::byte* record, float* row) const override {
    std::memcpy(row, record, kRecord);
  }

  void open(int slot) override {
    if (slots_.size() <= at(slot)) slots_.resize(at(slot) + 1);
    slots_[at(slot)].ring.assign(static_cast<std::size_t>(window_) * kRecord, std::byte{0});
  }
  void close(int slot) override { slots_[at(slot)] = {}; }
  void copy(int from, int to) override { slots_[at(to)] = slots_[at(from)]; }
  void reserve(int slot, std::size_t count) override {
    auto& entries = slots_[at(slot)].entries;
    entries.resize(std::max(entries.size(), count * kRecord));
  }

  void write_window(int slot, std::int64_t position, const std::byte* record) override {
    std::memcpy(slots_[at(slot)].ring.data() + ring_offset(position), record, kRecord);
  }
  void read_window(int slot, std::int64_t position, std::byte* record) const override {
    std::memcpy(record, slots_[at(slot)].ring.data() + ring_offset(position), kRecord);
  }
  void write_entry(int slot, std::int64_t entry, const std::byte* record) override {
    std::memcpy(slots_[at(slot)].entries.data() + static_cast<std::size_t>(entry) * kRecord, record,
                kRecord);
  }
  void read_entry(int slot, std::int64_t entry, std::byte* record) const override {
    std::memcpy(record, slots_[at(slot)].entries.data() + static_cast<std::size_t>(entry) * kRecord,
                kRecord);
  }

  std::size_t bytes_in_use() const override {
    std::size_t bytes = 0;
    for (const Slot& slot : slots_) bytes += slot.ring.size() + slot.entries.size();
    return bytes;
  }

 private:
  static constexpr std::size_t kRecord = kKvDim * sizeof(float);
  struct Slot {
    std::vector<std::byte> ring, entries;
  };

  static std::size_t at(int slot) { return static_cast<std::size_t>(slot); }
  std::size_t ring_offset(std::int64_t position) const {
    return static_cast<std::size_t>(position % window_) * kRecord;
  }

  bool quantise_;
  int window_;
  std::vector<Slot> slots_;
};

}  // namespace

ReferenceBackend::ReferenceBackend(Numerics numerics, const ModelConfig& config)
    : StagedBackend(numerics, config, IndexForm::kFp4) {
  for (int l = 0; l < config.layers; ++l) {
    set_rows(l, std::make_unique<FloatRows>(numerics == Numerics::kReference, config.window));
  }
}

void ReferenceBackend::list_keys(const QueryKeys& keys, std::vector<const float*>& list) const {
  list.insert(list.end(), keys.window.begin(), keys.window.end());
  list.insert(list.end(), keys.entries.begin(), keys.entries.end());
}

void ReferenceBackend::attend_row(const AttendRowParams& params) const {
  attend_row_reference(params);
}

}  // namespace cupel
