#include "cupel/checkpoint/prefetch.h"

#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace cupel {

void prefetch(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t lead = address % page;  // madvise takes whole pages
  auto* first = const_cast<std::byte*>(bytes.data()) - lead;
  ::madvise(first, bytes.size() + lead, MADV_WILLNEED);
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t lead = (page - address % page) % page;
  if (bytes.size() < lead + page) return;
  auto* first = const_cast<std::byte*>(bytes.data()) + lead;
  ::madvise(first, (bytes.size() - lead) / page * page, MADV_DONTNEED);
}

}  // namespace cupel
