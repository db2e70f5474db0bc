// Numbers handed out lowest first.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace cupel {

class FreeList {
 public:
  int take() {
    if (returned_.empty()) return next_++;
    std::pop_heap(returned_.begin(), returned_.end(), std::greater<>());
    const int number = returned_.back();
    returned_.pop_back();
    return number;
  }
  void give_back(int number) {
    returned_.push_back(number);
    std::push_heap(returned_.begin(), returned_.end(), std::greater<>());
  }
  // One more than the largest number ever taken.
  int limit() const { return next_; }
  std::size_t in_use() const { return static_cast<std::size_t>(next_) - returned_.size(); }

 private:
  int next_ = 0;
  std::vector<int> returned_;  // a heap, lowest on top
};

}  // namespace cupel
