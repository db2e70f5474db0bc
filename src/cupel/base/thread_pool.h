// A small thread pool for data-parallel loops.
//
// Work is handed out in units whose boundaries are chosen by the caller, never by the pool, and a
// unit writes only its own outputs: which thread runs a unit cannot change a result. Thread t of n
// begins with the t-th n-th of the units and helps others when it is done: the same units fall to
// the same threads unless one is late, so memory first touched in such a loop is near its user.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace cupel {

class ThreadPool {
 public:
  // `threads` >= 1 counts the calling thread. 0 means one per hardware thread.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const;

  // Calls body(unit, thread) once for each unit in [0, units); thread is in [0, threads()).
  // Returns when all are done; rethrows the exception of the lowest unit that threw. Calls from
  // inside a body, or from two threads at once, are not allowed.
  void parallel_for(std::size_t units, const std::function<void(std::size_t, int)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cupel
