// Backend `unified`: SGLang's unified pool (serving-stack A.3).
//
// One tensor of rows a layer: a window ring of 128 rows a slot, row = slot * 128 + position mod
// 128, then, from a boundary on, the compressed rows by block table. A row is 1024 bytes, the raw
// bf16 latent; with kv dtype fp8_e4m3 it is 512 bytes of nope (448 e4m3, each tile's scale twice in
// bytes 448+2t and 449+2t, 50 pad) and 128 bytes of bf16 rope under the same number. With numerics
// float32 and kv dtype auto a row is 512 fp32. Keys: window in ring order, then entries ascending;
// key blocks of 16; the sink is one more key.
#pragma once

#include <memory>
#include <vector>

#include "cupel/attention/page_pool.h"
#include "cupel/attention/staged_backend.h"

namespace cupel {

enum class UnifiedRowForm { kBf16, kFp8, kF32 };

class UnifiedRows final : public RowStore {
 public:
  UnifiedRows(UnifiedRowForm form, int ratio, int window);
  UnifiedRows(const UnifiedRows&) = delete;
  UnifiedRows& operator=(const UnifiedRows&) = delete;

  std::size_t record_bytes() const override {
    return nope_.element_bytes() + rope_.element_bytes();
  }
  void encode(const float* row, std::byte* record) const override;
  void decode(const std::byte* record, float* row) const override;

  void open(int slot) override;
  void close(int slot) override;
  void fork(int from, int to, std::size_t entries) override;
  void reserve(int slot, std::size_t count) override;

  void write_window(int slot, std::int64_t position, const std::byte* record) override;
  void read_window(int slot, std::int64_t position, std::byte* record) const override;
  void write_entry(int slot, std::int64_t entry, const std::byte* record) override;
  void read_entry(int slot, std::int64_t entry, std::byte* record) const override;

  std::size_t bytes_in_use() const override;
  std::size_t sequence_bytes(std::size_t entries) const override;
  bool owners_agree() const override;

  // Where a window position or an entry lies, and the tensors: nope rows (whole rows unless fp8)
  // and rope rows (fp8 only).
  std::size_t window_number(int slot, std::int64_t position) const;
  std::size_t entry_number(int slot, std::int64_t entry) const;
  std::size_t boundary() const { return kMaxSlots * window_; }
  const SlabMemory& nope() const { return nope_; }
  const SlabMemory& rope() const { return rope_; }

 private:
  static constexpr std::size_t kMaxSlots = 4096;

  // The compressed rows, as pages of a block table.
  class Blocks {
   public:
    explicit Blocks(UnifiedRows& rows) : rows_(rows) {}
    int allocate();
    void share(int block) { numbers_.share(block); }
    void release(int block);
    void copy(int from, int to);
    const PageNumbers& numbers() const { return numbers_; }
    std::size_t first_row(int block) const;

   private:
    UnifiedRows& rows_;
    PageNumbers numbers_;
  };

  void acquire(std::size_t first, std::size_t count);
  void release(std::size_t first, std::size_t count);
  void copy_rows(std::size_t from, std::size_t to, std::size_t count);
  void write(std::size_t number, const std::byte* record);
  void read(std::size_t number, std::byte* record) const;

  UnifiedRowForm form_;
  std::size_t window_;
  std::size_t rows_per_block_;
  SlabMemory nope_, rope_;
  Blocks blocks_;
  std::size_t open_slots_ = 0;
  std::vector<PageTable> block_tables_;  // by slot
};

class UnifiedBackend final : public StagedBackend {
 public:
  UnifiedBackend(ThreadPool& pool, KvDtype dtype, Numerics numerics, const ModelConfig& config);

 protected:
  void list_keys(const QueryKeys& keys, std::vector<const float*>& list) const override;
  void attend_row(const AttendRowParams& params) const override;

 private:
  std::int64_t window_size_ = 0;
};

}  // namespace cupel
