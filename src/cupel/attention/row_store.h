// The stored latent rows of one layer, for all sequences: a window ring and the compressed entries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cupel {

// A record is one row in stored form, its parts put one after the other. Functions that take a slot
// are thread-safe on different slots, except open, close, copy and reserve.
class RowStore {
 public:
  virtual ~RowStore() = default;

  virtual std::size_t record_bytes() const = 0;
  virtual void encode(const float* row, std::byte* record) const = 0;  // row [512]
  virtual void decode(const std::byte* record, float* row) const = 0;

  virtual void open(int slot) = 0;
  virtual void close(int slot) = 0;
  // `to`, open and empty, takes over the window and the first `entries` entries of `from`. Full
  // pages are shared.
  virtual void fork(int from, int to, std::size_t entries) = 0;
  // Makes room for entries [0, count).
  virtual void reserve(int slot, std::size_t count) = 0;

  // The ring keeps the last `window` positions.
  virtual void write_window(int slot, std::int64_t position, const std::byte* record) = 0;
  virtual void read_window(int slot, std::int64_t position, std::byte* record) const = 0;
  virtual void write_entry(int slot, std::int64_t entry, const std::byte* record) = 0;
  virtual void read_entry(int slot, std::int64_t entry, std::byte* record) const = 0;

  virtual std::size_t bytes_in_use() const = 0;
  // Bytes of a sequence of that many entries which shares nothing.
  virtual std::size_t sequence_bytes(std::size_t entries) const = 0;
  // Whether every page is free or has exactly the owners that the open slots say.
  virtual bool owners_agree() const = 0;
};

}  // namespace cupel
