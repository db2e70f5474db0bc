#include "cupel/load/interrupt_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace cupel {

InterruptWatch::InterruptWatch(std::function<bool()> interrupted, std::function<void()> stop) {
  if (!interrupted) return;
  thread_ = std::jthread([this, interrupted = std::move(interrupted),
                          stop = std::move(stop)](const std::stop_token& end) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!end.stop_requested()) {
      if (seen_ || interrupted()) {
        seen_ = true;
        stop();
      }
      never.wait_for(lock, end, std::chrono::milliseconds(20), [] { return false; });
    }
  });
}

}  // namespace cupel
