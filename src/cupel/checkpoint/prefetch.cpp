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

}  // namespace cupel
