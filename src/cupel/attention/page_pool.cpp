#include "cupel/attention/page_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cupel {
namespace {

// Small, so that little memory stays with slabs of which few pages are used.
constexpr std::size_t kSlabBytes = 1 << 20;

}  // namespace

SlabMemory::SlabMemory(std::size_t element_bytes, std::size_t elements_per_slab)
    : element_bytes_(element_bytes), per_slab_(elements_per_slab) {}

void SlabMemory::acquire(std::size_t first, std::size_t count) {
  if (element_bytes_ == 0) return;
  for (std::size_t i = first; i < first + count; ++i) {
    if (slabs_.size() <= i / per_slab_) slabs_.resize(i / per_slab_ + 1);
    Slab& slab = slabs_[i / per_slab_];
    if (!slab.bytes) {
      slab.bytes.reset(static_cast<std::byte*>(std::calloc(per_slab_, element_bytes_)));
      if (!slab.bytes) throw std::bad_alloc();
    }
    ++slab.used;
  }
}

void SlabMemory::release(std::size_t first, std::size_t count) {
  if (element_bytes_ == 0) return;
  for (std::size_t i = first; i < first + count; ++i) {
    Slab& slab = slabs_[i / per_slab_];
    if (--slab.used == 0) slab.bytes.reset();
  }
}

std::byte* SlabMemory::at(std::size_t number) {
  return slabs_[number / per_slab_].bytes.get() + number % per_slab_ * element_bytes_;
}

const std::byte* SlabMemory::at(std::size_t number) const {
  return slabs_[number / per_slab_].bytes.get() + number % per_slab_ * element_bytes_;
}

PagePool::PagePool(std::size_t page_bytes)
    : memory_(page_bytes, std::max<std::size_t>(1, kSlabBytes / page_bytes)) {}

int PagePool::allocate() {
  const int page = numbers_.take();
  memory_.acquire(static_cast<std::size_t>(page), 1);
  return page;
}

void PagePool::release(int page) {
  if (numbers_.drop(page)) memory_.release(static_cast<std::size_t>(page), 1);
}

void PagePool::copy(int from, int to) {
  std::memcpy(page(to), page(from), page_bytes());
}

void PageTable::count_owners(std::vector<int>& counted) const {
  for (const int page : pages_) {
    counted.resize(std::max(counted.size(), static_cast<std::size_t>(page) + 1));
    ++counted[static_cast<std::size_t>(page)];
  }
}

}  // namespace cupel
