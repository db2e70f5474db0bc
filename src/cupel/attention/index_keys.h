// The indexer's cache: one key an entry of a ratio-4 layer, and how keys are scored and chosen.
//
// Three forms: FP4 with bf16 scores (backend `reference`, spec section 3.8), fp8 with fp32 scores
// (`packed` and `unified`: 132 bytes a key, 64 keys a page, values first, then scales), and fp32
// (numerics float32).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace cupel {

enum class IndexForm { kFp4, kFp8, kF32 };

class IndexKeys {
 public:
  virtual ~IndexKeys() = default;

  // Slots are numbered by the caller; each starts empty.
  virtual void open(int slot) = 0;
  virtual void close(int slot) = 0;
  // `to`, open and empty, takes over the first `entries` keys of `from`. Full pages are shared.
  virtual void fork(int from, int to, std::size_t entries) = 0;
  // Makes room for entries [0, count). Not thread-safe; the functions below are, on different
  // slots.
  virtual void reserve(int slot, std::size_t count) = 0;
  // Stores the key [128] of an entry.
  virtual void store(int slot, std::size_t entry, const float* key) = 0;
  // scores[j] for j in [0, count). q [heads, 128] and weights [heads] of one token.
  virtual void score(int slot, std::size_t count, const float* q, const float* weights,
                     float* scores) const = 0;
  virtual std::size_t bytes_in_use() const = 0;
  // As in RowStore.
  virtual std::size_t sequence_bytes(std::size_t entries) const = 0;
  virtual bool owners_agree() const = 0;
};

std::unique_ptr<IndexKeys> make_index_keys(IndexForm form, std::size_t heads);

// The entries that a query with `visible` entries attends to, ascending: all of them if they are at
// most `topk`, else the best by score, ties to the lowest number.
std::vector<std::int32_t> select_entries(const IndexKeys& keys, int slot, std::size_t visible,
                                         std::size_t topk, const float* q, const float* weights);

}  // namespace cupel
