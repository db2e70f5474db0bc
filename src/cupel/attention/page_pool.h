// Fixed-size pages of bytes, handed out by number.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cupel/attention/free_list.h"

namespace cupel {

// Memory grows in slabs that never move; a released page is handed out again, lowest number first.
class PagePool {
 public:
  explicit PagePool(std::size_t page_bytes);

  int allocate();
  void release(int page);

  std::byte* page(int index);
  const std::byte* page(int index) const;

  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t pages_in_use() const { return numbers_.in_use(); }

 private:
  std::size_t page_bytes_;
  std::size_t pages_per_slab_;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  FreeList numbers_;
};

// The pages of one sequence in one pool, in order of the entries they hold. Grows on demand.
class PageTable {
 public:
  // Makes sure that entries [0, count) have a page.
  void reserve(PagePool& pool, std::size_t count, std::size_t entries_per_page);
  void release(PagePool& pool);
  void copy_from(PagePool& pool, const PageTable& other);

  int page_of(std::size_t entry, std::size_t entries_per_page) const {
    return pages_[entry / entries_per_page];
  }
  const std::vector<int>& pages() const { return pages_; }

 private:
  std::vector<int> pages_;
};

}  // namespace cupel
