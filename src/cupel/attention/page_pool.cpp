#include "cupel/attention/page_pool.h"

#include <algorithm>
#include <cstring>

namespace cupel {
namespace {

constexpr std::size_t kSlabBytes = 4 << 20;

}  // namespace

PagePool::PagePool(std::size_t page_bytes)
    : page_bytes_(page_bytes), pages_per_slab_(std::max<std::size_t>(1, kSlabBytes / page_bytes)) {}

int PagePool::allocate() {
  const int page = numbers_.take();
  if (static_cast<std::size_t>(page) >= slabs_.size() * pages_per_slab_) {
    slabs_.push_back(std::make_unique<std::byte[]>(pages_per_slab_ * page_bytes_));
  }
  return page;
}

void PagePool::release(int page) {
  numbers_.give_back(page);
}

std::byte* PagePool::page(int index) {
  const auto i = static_cast<std::size_t>(index);
  return slabs_[i / pages_per_slab_].get() + i % pages_per_slab_ * page_bytes_;
}

const std::byte* PagePool::page(int index) const {
  const auto i = static_cast<std::size_t>(index);
  return slabs_[i / pages_per_slab_].get() + i % pages_per_slab_ * page_bytes_;
}

void PageTable::reserve(PagePool& pool, std::size_t count, std::size_t entries_per_page) {
  while (pages_.size() * entries_per_page < count) pages_.push_back(pool.allocate());
}

void PageTable::release(PagePool& pool) {
  for (const int page : pages_) pool.release(page);
  pages_.clear();
}

void PageTable::copy_from(PagePool& pool, const PageTable& other) {
  while (pages_.size() > other.pages_.size()) {
    pool.release(pages_.back());
    pages_.pop_back();
  }
  while (pages_.size() < other.pages_.size()) pages_.push_back(pool.allocate());
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    std::memcpy(pool.page(pages_[i]), pool.page(other.pages_[i]), pool.page_bytes());
  }
}

}  // namespace cupel
