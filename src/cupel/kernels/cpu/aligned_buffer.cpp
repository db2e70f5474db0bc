#include "cupel/kernels/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace cupel {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Smaller buffers come from the allocator: a map of its own costs a page at least.
constexpr std::size_t kOwnMap = std::size_t{1} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

// A larger map, of which what lies around the pages is given back.
void* map_pages(std::size_t bytes) {
  const std::size_t length = round_up(bytes, kPage);
  void* map = ::mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::uint8_t*>(map);
  const std::size_t lead =
      (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (lead > 0) ::munmap(begin, lead);
  if (kHugePage > lead) ::munmap(begin + lead + length, kHugePage - lead);
  ::madvise(begin + lead, length, MADV_HUGEPAGE);  // a hint
  return begin + lead;
}

void unmap_pages(void* pages, std::size_t bytes) noexcept {
  ::munmap(pages, round_up(bytes, kPage));
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kOwnMap) {
    data_ = static_cast<std::uint8_t*>(map_pages(bytes));
    return;
  }
  data_ = static_cast<std::uint8_t*>(std::aligned_alloc(kLine, round_up(bytes, kLine)));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, bytes);
}

AlignedBuffer::~AlignedBuffer() {
  if (size_ >= kOwnMap) {
    unmap_pages(data_, size_);
  } else {
    std::free(data_);
  }
}

}  // namespace cupel
