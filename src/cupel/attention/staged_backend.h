// The course of a step, the same for every backend: bring the step's rows into stored form, store
// completed entries, let every query gather and attend, and only then overwrite the window ring
// (a query of the step may still need what the ring holds).
#pragma once

#include <memory>
#include <vector>

#include "cupel/attention/attend_row.h"
#include "cupel/attention/backend.h"
#include "cupel/attention/free_list.h"
#include "cupel/attention/index_keys.h"
#include "cupel/attention/row_gather.h"
#include "cupel/attention/row_store.h"

namespace cupel {

class StagedBackend : public AttentionBackend {
 public:
  int open() final;
  void close(int slot) final;
  int fork(int from, std::int64_t length) final;
  void attend(const AttentionStep& step) final;
  void read_window(int slot, int layer, std::int64_t position, float* out) const final;
  void read_entry(int slot, int layer, std::int64_t entry, float* out) const final;
  std::size_t bytes_in_use() const final;
  std::size_t sequence_bytes(std::int64_t length) const final;
  bool owners_agree() const final;

  const RowStore& rows(int layer) const { return *layers_[static_cast<std::size_t>(layer)].rows; }

 protected:
  StagedBackend(ThreadPool& pool, Numerics numerics, const ModelConfig& config,
                IndexForm index_form);
  // Derived constructors give each layer its rows.
  void set_rows(int layer, std::unique_ptr<RowStore> rows);

  // The key list of a query, in the order of the backend.
  virtual void list_keys(const QueryKeys& keys, std::vector<const float*>& list) const = 0;
  virtual void attend_row(const AttendRowParams& params) const = 0;

 private:
  struct Layer {
    int ratio = 0;
    std::unique_ptr<RowStore> rows;
    std::unique_ptr<IndexKeys> index_keys;  // ratio 4 only

    std::size_t entries(std::int64_t length) const {
      return ratio == 0 ? 0 : static_cast<std::size_t>(length / ratio);
    }
  };

  std::vector<std::byte> stage(const AttentionStep& step, Layer& layer) const;

  ThreadPool& pool_;
  Numerics numerics_;
  std::size_t heads_, index_heads_, index_topk_;
  int window_;
  std::vector<Layer> layers_;
  FreeList slots_;
};

}  // namespace cupel
