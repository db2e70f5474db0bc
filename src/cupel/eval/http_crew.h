// Many requests over a bounded number of connections, one thread each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cupel/eval/http_connection.h"
#include "cupel/eval/retry.h"
#include "cupel/eval/target.h"

namespace cupel {

struct RetryRule {
  int retries = 5;
  double backoff_seconds = 0.5;
};

// One call of HttpTarget::complete, whose comment says what it does.
class HttpCrew {
 public:
  // Asks request `index` once. Called from many threads, each with its own connection. Throws
  // TransientError where it may succeed later; any other exception ends the run.
  using Ask = std::function<Completion(HttpConnection& connection, std::size_t index)>;
  using Done = std::function<void(std::size_t, const Completion&)>;

  HttpCrew(const HttpSettings& settings, RetryRule rule, Ask ask)
      : settings_(settings), rule_(rule), ask_(std::move(ask)) {}

  // Requests 0 to count - 1, at most `concurrency` at a time (0 = all). `done` runs in the calling
  // thread, and so does `started`, once, when there are as many threads as there will be.
  void run(std::size_t count, int concurrency, const Done& done,
           const std::function<void()>& started = {});

  // Ends the run: those under way fail, those not asked yet are reported as such. From any thread.
  void stop();

  // For an Ask that is to begin later. False if the run ends meanwhile or the server is given up.
  bool pause(double seconds);

 private:
  class Joiner;
  class Listed;

  // The first four with the lock held.
  bool start_thread();
  bool may_ask() const;
  void abandon();
  void break_off();
  void work(std::uint64_t seed);
  std::optional<std::size_t> next();
  Completion persist(HttpConnection& connection, std::size_t index, Backoff& backoff);
  bool sleep(double seconds);
  void report(std::size_t index, Completion completion);

  const HttpSettings& settings_;
  RetryRule rule_;
  Ask ask_;

  std::mutex mutex_;                 // guards what follows
  std::condition_variable changed_;  // a request or a thread ended: for the calling thread
  std::condition_variable ending_;   // the run ends: for threads that wait to try again
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::deque<std::pair<std::size_t, Completion>> ended_;
  std::size_t working_ = 0;  // threads that have not ended
  std::int64_t answers_ = 0;
  std::string lost_;  // why the server is given up; empty while it is not
  std::exception_ptr mistake_;
  bool abandoned_ = false;
  std::vector<HttpConnection*> connections_;

  std::vector<std::thread> threads_;
};

}  // namespace cupel
