#include "cupel/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace cupel {
namespace {

// How often a thread looks for work before it sleeps: some tens of microseconds, the time that
// waking it would take.
constexpr int kSpins = 2000;

void pause() {
  __builtin_ia32_pause();
}

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;

  // One loop at a time. `generation` tells the workers that a new one has begun.
  std::atomic<unsigned long> generation{0};
  std::atomic<bool> stopping{false};
  std::atomic<int> running{0};
  const std::function<void(std::size_t, int)>* body = nullptr;
  // The part of the units that a thread takes first; others help when theirs is done.
  struct alignas(64) Part {
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
  };
  std::vector<Part> parts;
  std::exception_ptr error;
  std::size_t error_unit = 0;
  std::vector<std::jthread> workers;  // last: they are joined before the rest goes

  void run_unit(std::size_t unit, int thread) {
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

  void work(int thread) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& part = parts[(static_cast<std::size_t>(thread) + i) % parts.size()];
      for (;;) {
        const std::size_t unit = part.next.fetch_add(1, std::memory_order_relaxed);
        if (unit >= part.end) break;
        run_unit(unit, thread);
      }
    }
  }

  void worker(int thread) {
    unsigned long seen = 0;
    const auto called = [&] { return stopping || generation != seen; };
    for (;;) {
      for (int i = 0; i < kSpins && !called(); ++i) pause();
      if (!called()) {
        std::unique_lock lock(mutex);
        wake.wait(lock, called);
      }
      if (stopping) return;
      seen = generation;
      work(thread);
      if (running.fetch_sub(1) == 1) {
        const std::scoped_lock lock(mutex);  // the caller is either not yet, or already waiting
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  state_->parts = std::vector<State::Part>(static_cast<std::size_t>(threads));
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
  for (std::size_t t = 0; t < s.parts.size(); ++t) {
    s.parts[t].next.store(units * t / s.parts.size(), std::memory_order_relaxed);
    s.parts[t].end = units * (t + 1) / s.parts.size();
  }
  s.body = &body;
  s.error = nullptr;
  s.running = static_cast<int>(s.workers.size());
  {
    const std::scoped_lock lock(s.mutex);
    ++s.generation;
  }
  s.wake.notify_all();
  s.work(0);
  for (int i = 0; i < kSpins && s.running != 0; ++i) pause();
  if (s.running != 0) {
    std::unique_lock lock(s.mutex);
    s.done.wait(lock, [&] { return s.running == 0; });
  }
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace cupel
