// Fixed-size pages of bytes, handed out by number, shared by a count of owners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "cupel/attention/page_numbers.h"

namespace cupel {

// Bytes by number in slabs that never move while any of their pages is in use. Memory is touched
// where it is written, and returned when the last page of a slab is released.
class SlabMemory {
 public:
  // Elements of element_bytes, elements_per_slab together.
  SlabMemory(std::size_t element_bytes, std::size_t elements_per_slab);

  // Elements [first, first + count) are in use from now on (new slabs are zero), or no longer.
  void acquire(std::size_t first, std::size_t count);
  void release(std::size_t first, std::size_t count);

  std::byte* at(std::size_t number);
  const std::byte* at(std::size_t number) const;
  std::size_t element_bytes() const { return element_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  struct Slab {
    std::unique_ptr<std::byte[], Free> bytes;
    std::size_t used = 0;
  };

  std::size_t element_bytes_;
  std::size_t per_slab_;
  std::vector<Slab> slabs_;
};

class PagePool {
 public:
  explicit PagePool(std::size_t page_bytes);

  int allocate();  // a page with one owner, lowest number first; its bytes are not defined
  void share(int page) { numbers_.share(page); }
  void release(int page);  // one owner less
  void copy(int from, int to);
  int owners(int page) const { return numbers_.owners(page); }

  std::byte* page(int index) { return memory_.at(static_cast<std::size_t>(index)); }
  const std::byte* page(int index) const { return memory_.at(static_cast<std::size_t>(index)); }

  std::size_t page_bytes() const { return memory_.element_bytes(); }
  std::size_t pages_in_use() const { return numbers_.in_use(); }
  bool owners_agree(std::span<const int> counted) const { return numbers_.agrees(counted); }

 private:
  SlabMemory memory_;
  PageNumbers numbers_;
};

// How many pages hold `entries` entries.
constexpr std::size_t pages_for(std::size_t entries, std::size_t entries_per_page) {
  return (entries + entries_per_page - 1) / entries_per_page;
}

// The pages of one sequence in one pool, in order of the entries they hold. Grows on demand. Pool
// has allocate, share, release and copy.
class PageTable {
 public:
  // Makes sure that entries [0, count) have a page.
  template <typename Pool>
  void reserve(Pool& pool, std::size_t count, std::size_t entries_per_page) {
    while (pages_.size() < pages_for(count, entries_per_page)) pages_.push_back(pool.allocate());
  }

  template <typename Pool>
  void release(Pool& pool) {
    for (const int page : pages_) pool.release(page);
    pages_.clear();
  }

  // An empty table takes over the first `count` entries of `other`, as far as it has them. Full
  // pages are shared: entries are written once, in order. A part-used page is copied.
  template <typename Pool>
  void fork_from(Pool& pool, const PageTable& other, std::size_t count,
                 std::size_t entries_per_page) {
    const std::size_t pages = std::min(pages_for(count, entries_per_page), other.pages_.size());
    for (std::size_t i = 0; i < pages; ++i) {
      int page = other.pages_[i];
      if ((i + 1) * entries_per_page <= count) {
        pool.share(page);
      } else {
        page = pool.allocate();
        pool.copy(other.pages_[i], page);
      }
      pages_.push_back(page);
    }
  }

  // Adds this table's pages to counted[page].
  void count_owners(std::vector<int>& counted) const;

  int page_of(std::size_t entry, std::size_t entries_per_page) const {
    return pages_[entry / entries_per_page];
  }
  const std::vector<int>& pages() const { return pages_; }

 private:
  std::vector<int> pages_;
};

}  // namespace cupel
