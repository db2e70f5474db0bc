// Page numbers with a count of owners.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cupel/attention/free_list.h"

namespace cupel {

// A number is free, owned once, or shared by a count of owners; free ones go out lowest first.
class PageNumbers {
 public:
  int take();            // with one owner
  void share(int page);  // one owner more
  bool drop(int page);   // one owner less; true if it was the last
  int owners(int page) const { return owners_[static_cast<std::size_t>(page)]; }
  std::size_t in_use() const { return free_.in_use(); }

  // Whether the owners of every page are what the caller counted: counted[page], 0 beyond its end.
  bool agrees(std::span<const int> counted) const;

 private:
  FreeList free_;
  std::vector<int> owners_;
};

}  // namespace cupel
