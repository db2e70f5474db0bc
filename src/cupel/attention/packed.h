// Backend `packed`: SGLang's separate packed fp8 pools (serving-stack A.2).
//
// A page of a main pool holds `n` entries: n value records of 576 bytes (448 e4m3 nope, 64 bf16
// rope), then n scale records of 8 bytes (7 E8M0, one pad); its size is rounded up to a multiple of
// 576. n is 128 for the window, 64 for ratio 4, 2 for ratio 128. Keys: window newest first, then
// entries ascending; key blocks of 64.
#pragma once

#include "cupel/attention/paged_rows.h"
#include "cupel/attention/staged_backend.h"

namespace cupel {

class PackedRows final : public PagedRows {
 public:
  // ratio 0, 4 or 128: how many entries an entry page holds.
  PackedRows(int ratio, int window);

  static std::size_t page_bytes(std::size_t entries_per_page);

  std::size_t record_bytes() const override { return kValueRecord + kScaleRecord; }
  void encode(const float* row, std::byte* record) const override;
  void decode(const std::byte* record, float* row) const override;

  void write_window(int slot, std::int64_t position, const std::byte* record) override;
  void read_window(int slot, std::int64_t position, std::byte* record) const override;
  void write_entry(int slot, std::int64_t entry, const std::byte* record) override;
  void read_entry(int slot, std::int64_t entry, std::byte* record) const override;

  static constexpr std::size_t kValueRecord = 576;
  static constexpr std::size_t kScaleRecord = 8;

 private:
  std::size_t window_;
};

class PackedBackend final : public StagedBackend {
 public:
  PackedBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config);

 protected:
  void list_keys(const QueryKeys& keys, std::vector<const float*>& list) const override;
  void attend_row(const AttendRowParams& params) const override;
};

}  // namespace cupel
