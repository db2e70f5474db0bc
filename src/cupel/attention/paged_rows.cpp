#include "cupel/attention/paged_rows.h"

#include <algorithm>

namespace cupel {

PagedRows::PagedRows(std::size_t window_page_bytes, std::size_t entry_page_bytes,
                     std::size_t entries_per_page)
    : entries_per_page_(entries_per_page),
      window_pool_(window_page_bytes),
      entry_pool_(entry_page_bytes) {}

std::size_t PagedRows::entries_of_ratio(int ratio) {
  return ratio == 0 ? 1 : 256 / static_cast<std::size_t>(ratio);
}

void PagedRows::open(int slot) {
  slots_.resize(std::max(slots_.size(), static_cast<std::size_t>(slot) + 1));
  at(slot).window.reserve(window_pool_, 1, 1);
}

void PagedRows::close(int slot) {
  at(slot).window.release(window_pool_);
  at(slot).entries.release(entry_pool_);
}

void PagedRows::fork(int from, int to, std::size_t entries) {
  window_pool_.copy(at(from).window.page_of(0, 1), at(to).window.page_of(0, 1));
  at(to).entries.fork_from(entry_pool_, at(from).entries, entries, entries_per_page_);
}

void PagedRows::reserve(int slot, std::size_t count) {
  at(slot).entries.reserve(entry_pool_, count, entries_per_page_);
}

std::size_t PagedRows::bytes_in_use() const {
  return window_pool_.pages_in_use() * window_pool_.page_bytes() +
         entry_pool_.pages_in_use() * entry_pool_.page_bytes();
}

std::size_t PagedRows::sequence_bytes(std::size_t entries) const {
  return window_pool_.page_bytes() +
         pages_for(entries, entries_per_page_) * entry_pool_.page_bytes();
}

bool PagedRows::owners_agree() const {
  std::vector<int> windows, entries;
  for (const Slot& slot : slots_) {
    slot.window.count_owners(windows);
    slot.entries.count_owners(entries);
  }
  return window_pool_.owners_agree(windows) && entry_pool_.owners_agree(entries);
}

const std::byte* PagedRows::window_page(int slot) const {
  return window_pool_.page(at(slot).window.page_of(0, 1));
}
std::byte* PagedRows::writable_window(int slot) {
  return window_pool_.page(at(slot).window.page_of(0, 1));
}

const std::byte* PagedRows::entry_page(int slot, std::int64_t entry) const {
  return entry_pool_.page(
      at(slot).entries.page_of(static_cast<std::size_t>(entry), entries_per_page_));
}
std::byte* PagedRows::writable_entry_page(int slot, std::int64_t entry) {
  return entry_pool_.page(
      at(slot).entries.page_of(static_cast<std::size_t>(entry), entries_per_page_));
}

}  // namespace cupel
