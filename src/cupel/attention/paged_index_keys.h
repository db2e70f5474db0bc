// The fp8 index keys of `packed` and `unified` (serving-stack A.2): 132 bytes a key.
//
// A page holds 64 keys: 64 x 128 e4m3 values, then 64 fp32 scales. The last page may be part used.
#pragma once

#include "cupel/attention/index_keys.h"
#include "cupel/attention/page_pool.h"

namespace cupel {

class PagedIndexKeys final : public IndexKeys {
 public:
  explicit PagedIndexKeys(std::size_t heads);

  void open(int slot) override;
  void close(int slot) override;
  void fork(int from, int to, std::size_t entries) override;
  void reserve(int slot, std::size_t count) override;
  void store(int slot, std::size_t entry, const float* key) override;
  void score(int slot, std::size_t count, const float* q, const float* weights,
             float* scores) const override;
  std::size_t bytes_in_use() const override;
  std::size_t sequence_bytes(std::size_t entries) const override;
  bool owners_agree() const override;

  // The raw page that holds an entry.
  const std::byte* page(int slot, std::size_t entry) const;
  std::size_t page_bytes() const { return pool_.page_bytes(); }

  static constexpr std::size_t kPerPage = 64;

 private:
  std::size_t heads_;
  PagePool pool_;
  std::vector<PageTable> tables_;  // by slot
};

}  // namespace cupel
