#include "cupel/attention/reference.h"

#include <cstring>

#include "cupel/attention/kv_codec.h"
#include "cupel/attention/paged_rows.h"

namespace cupel {
namespace {

// Rows of fp32. With numerics float32 they are kept as they come.
class FloatRows final : public PagedRows {
 public:
  FloatRows(bool quantise, int ratio, int window)
      : PagedRows(static_cast<std::size_t>(window) * kRecord, entries_of_ratio(ratio) * kRecord,
                  entries_of_ratio(ratio)),
        quantise_(quantise),
        window_(window) {}

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

  void write_window(int slot, std::int64_t position, const std::byte* record) override {
    std::memcpy(writable_window(slot) + ring_offset(position), record, kRecord);
  }
  void read_window(int slot, std::int64_t position, std::byte* record) const override {
    std::memcpy(record, window_page(slot) + ring_offset(position), kRecord);
  }
  void write_entry(int slot, std::int64_t entry, const std::byte* record) override {
    std::memcpy(writable_entry_page(slot, entry) + place_in_page(entry) * kRecord, record, kRecord);
  }
  void read_entry(int slot, std::int64_t entry, std::byte* record) const override {
    std::memcpy(record, entry_page(slot, entry) + place_in_page(entry) * kRecord, kRecord);
  }

 private:
  static constexpr std::size_t kRecord = kKvDim * sizeof(float);

  std::size_t ring_offset(std::int64_t position) const {
    return static_cast<std::size_t>(position % window_) * kRecord;
  }

  bool quantise_;
  int window_;
};

}  // namespace

ReferenceBackend::ReferenceBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config)
    : StagedBackend(pool, numerics, config, IndexForm::kFp4) {
  for (int l = 0; l < config.layers; ++l) {
    set_rows(l, std::make_unique<FloatRows>(numerics == Numerics::kReference, config.ratio(l),
                                            config.window));
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
