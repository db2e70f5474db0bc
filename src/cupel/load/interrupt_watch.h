// Ends a measurement that waits in other calls when the user wants it ended.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace cupel {

class InterruptWatch {
 public:
  // Asks `interrupted` some times a second, in a thread of its own, and calls `stop` from the first
  // yes on as often: a request that was about to go out is met, too. Without `interrupted` it does
  // nothing.
  InterruptWatch(std::function<bool()> interrupted, std::function<void()> stop);

  // True once `interrupted` said yes.
  bool seen() const { return seen_; }

 private:
  std::atomic<bool> seen_ = false;
  std::jthread thread_;
};

}  // namespace cupel
