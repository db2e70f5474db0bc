#include "cupel/attention/page_numbers.h"

#include <algorithm>

namespace cupel {

int PageNumbers::take() {
  const int page = free_.take();
  owners_.resize(std::max(owners_.size(), static_cast<std::size_t>(page) + 1));
  owners_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void PageNumbers::share(int page) {
  ++owners_[static_cast<std::size_t>(page)];
}

bool PageNumbers::drop(int page) {
  if (--owners_[static_cast<std::size_t>(page)] > 0) return false;
  free_.give_back(page);
  return true;
}

bool PageNumbers::agrees(std::span<const int> counted) const {
  std::size_t used = 0;
  for (std::size_t page = 0; page < std::max(owners_.size(), counted.size()); ++page) {
    const int owners = page < owners_.size() ? owners_[page] : 0;
    if (owners != (page < counted.size() ? counted[page] : 0)) return false;
    used += owners > 0 ? 1 : 0;
  }
  return used == in_use();
}

}  // namespace cupel
