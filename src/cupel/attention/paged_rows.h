// Storage of the row stores whose window is one page a sequence and whose entries lie in pages of
// their own (backends `reference` and `packed`; what is inside a page is theirs).
#pragma once

#include <vector>

#include "cupel/attention/page_pool.h"
#include "cupel/attention/row_store.h"

namespace cupel {

class PagedRows : public RowStore {
 public:
  void open(int slot) final;
  void close(int slot) final;
  void fork(int from, int to, std::size_t entries) final;
  void reserve(int slot, std::size_t count) final;

  std::size_t bytes_in_use() const final;
  std::size_t sequence_bytes(std::size_t entries) const final;
  bool owners_agree() const final;

  // The raw page that holds the window, or an entry.
  const std::byte* window_page(int slot) const;
  const std::byte* entry_page(int slot, std::int64_t entry) const;
  std::size_t entries_per_page() const { return entries_per_page_; }

 protected:
  PagedRows(std::size_t window_page_bytes, std::size_t entry_page_bytes,
            std::size_t entries_per_page);

  std::byte* writable_window(int slot);
  std::byte* writable_entry_page(int slot, std::int64_t entry);
  std::size_t place_in_page(std::int64_t entry) const {
    return static_cast<std::size_t>(entry) % entries_per_page_;
  }

  // How many entries a page of 256 tokens holds; 1 where there are none (ratio 0).
  static std::size_t entries_of_ratio(int ratio);

 private:
  struct Slot {
    PageTable window;  // one page
    PageTable entries;
  };

  const Slot& at(int slot) const { return slots_[static_cast<std::size_t>(slot)]; }
  Slot& at(int slot) { return slots_[static_cast<std::size_t>(slot)]; }

  std::size_t entries_per_page_;
  PagePool window_pool_, entry_pool_;
  std::vector<Slot> slots_;
};

}  // namespace cupel
