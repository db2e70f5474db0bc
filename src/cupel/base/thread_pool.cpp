#include "cupel/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace cupel {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  std::vector<std::jthread> workers;

  // One loop at a time. `generation` tells the workers that a new one has begun.
  unsigned long generation = 0;
  bool stopping = false;
  int running = 0;
  std::size_t units = 0;
  const std::function<void(std::size_t, int)>* body = nullptr;
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::size_t error_unit = 0;

  void work(int thread) {
    for (;;) {
      const std::size_t unit = next.fetch_add(1, std::memory_order_relaxed);
      if (unit >= units) return;
      try {
        (*body)(unit, thread);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!error || unit < error_unit) {
          error = std::current_exception();
          error_unit = unit;
        }
      }
    }
  }

  void worker(int thread) {
    unsigned long seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping) return;
        seen = generation;
      }
      work(thread);
      const std::scoped_lock lock(mutex);
      if (--running == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int t = 1; t < threads; ++t) {
    state_->workers.emplace_back([state = state_.get(), t] { state->worker(t); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
}

int ThreadPool::threads() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

void ThreadPool::parallel_for(std::size_t units,
                              const std::function<void(std::size_t, int)>& body) {
  State& s = *state_;
  if (units <= 1 || s.workers.empty()) {
    for (std::size_t unit = 0; unit < units; ++unit) body(unit, 0);
    return;
  }
  {
    const std::scoped_lock lock(s.mutex);
    s.units = units;
    s.body = &body;
    s.next.store(0, std::memory_order_relaxed);
    s.error = nullptr;
    s.running = static_cast<int>(s.workers.size());
    ++s.generation;
  }
  s.wake.notify_all();
  s.work(0);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.running == 0; });
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace cupel
