#include "cupel/eval/http_crew.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

// Descriptors beside the connections: records, standard streams, name lookup.
constexpr std::size_t kOtherDescriptors = 64;
// A connection can be broken off once it is there: a thread that is about to make one when the run
// is stopped is met by the next time.
constexpr std::chrono::milliseconds kBreakOffAgain{20};

Completion failure(const std::string& what, int retries) {
  Completion completion;
  completion.stop_reason = StopReason::kError;
  completion.error = what;
  completion.retries = retries;
  return completion;
}

// As many connections as descriptors allow, after raising the limit as far as it goes.
std::size_t allowed_connections(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < wanted + kOtherDescriptors) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted + kOtherDescriptors);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= wanted + kOtherDescriptors) return wanted;
  const std::size_t allowed =
      limit.rlim_cur > kOtherDescriptors + 1 ? limit.rlim_cur - kOtherDescriptors : 1;
  spdlog::warn("{} connections instead of {}: the limit of open files", allowed, wanted);
  return allowed;
}

}  // namespace

// Ends and waits for all threads, whatever happens in between.
class HttpCrew::Joiner {
 public:
  explicit Joiner(HttpCrew& crew) : crew_(crew) {}
  Joiner(const Joiner&) = delete;
  Joiner& operator=(const Joiner&) = delete;
  ~Joiner() {
    {
      std::unique_lock lock(crew_.mutex_);
      crew_.abandon();
      while (crew_.working_ > 0) {
        crew_.break_off();
        crew_.changed_.wait_for(lock, kBreakOffAgain, [&] { return crew_.working_ == 0; });
      }
    }
    for (std::thread& thread : crew_.threads_) thread.join();
  }

 private:
  HttpCrew& crew_;
};

// Keeps a connection where stop() finds it.
class HttpCrew::Listed {
 public:
  Listed(HttpCrew& crew, HttpConnection& connection) : crew_(crew), connection_(connection) {
    const std::lock_guard lock(crew_.mutex_);
    crew_.connections_.push_back(&connection_);
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;
  ~Listed() {
    const std::lock_guard lock(crew_.mutex_);
    std::erase(crew_.connections_, &connection_);
  }

 private:
  HttpCrew& crew_;
  HttpConnection& connection_;
};

void HttpCrew::run(std::size_t count, int concurrency, const Done& done,
                   const std::function<void()>& started) {
  if (count == 0) return;
  count_ = count;
  const std::size_t bound = concurrency > 0 ? static_cast<std::size_t>(concurrency) : count;
  {
    const Joiner joiner(*this);
    std::size_t to_start = allowed_connections(std::min(count, bound));
    bool told = !started;
    std::unique_lock lock(mutex_);
    // Answers go out before further threads start: a thousand of them take their time.
    while (true) {
      if (!ended_.empty()) {
        const auto [index, completion] = std::move(ended_.front());
        ended_.pop_front();
        lock.unlock();
        done(index, completion);
        lock.lock();
      } else if (to_start > 0 && may_ask()) {
        --to_start;
        if (!start_thread()) to_start = 0;
      } else if (!told) {
        told = true;
        lock.unlock();
        started();
        lock.lock();
      } else if (working_ > 0 && abandoned_) {
        break_off();
        changed_.wait_for(lock, kBreakOffAgain, [&] { return !ended_.empty() || working_ == 0; });
      } else if (working_ > 0) {
        changed_.wait(lock, [&] { return !ended_.empty() || working_ == 0 || abandoned_; });
      } else {
        break;
      }
    }
  }
  if (mistake_) std::rethrow_exception(mistake_);
  for (; next_ < count_; ++next_) done(next_, failure("not asked: " + lost_, 0));
}

// False if this machine allows no more of them; then the others do the work.
bool HttpCrew::start_thread() {
  const std::uint64_t seed = std::random_device()();
  try {
    threads_.emplace_back([this, seed] { work(seed); });
  } catch (const std::system_error& error) {
    if (threads_.empty()) throw InfrastructureError("threads", error.what());
    spdlog::warn("{} connections instead of more: {}", threads_.size(), error.what());
    return false;
  }
  ++working_;
  return true;
}

void HttpCrew::work(std::uint64_t seed) {
  try {
    HttpConnection connection(settings_);
    const Listed listed(*this, connection);
    Backoff backoff(rule_.backoff_seconds, seed);
    while (true) {
      const std::optional<std::size_t> index = next();
      if (!index) break;
      report(*index, persist(connection, *index, backoff));
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!mistake_) mistake_ = std::current_exception();
    ending_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  --working_;
  changed_.notify_all();
}

std::optional<std::size_t> HttpCrew::next() {
  const std::lock_guard lock(mutex_);
  if (!may_ask()) return std::nullopt;
  return next_++;
}

bool HttpCrew::may_ask() const {
  return next_ < count_ && !abandoned_ && !mistake_ && lost_.empty();
}

void HttpCrew::report(std::size_t index, Completion completion) {
  const std::lock_guard lock(mutex_);
  ended_.emplace_back(index, std::move(completion));
  changed_.notify_all();
}

// Asks until there is an answer, or no try is left.
Completion HttpCrew::persist(HttpConnection& connection, std::size_t index, Backoff& backoff) {
  std::int64_t answers_before = 0;
  {
    const std::lock_guard lock(mutex_);
    answers_before = answers_;
  }
  for (int retry = 0;; ++retry) {
    try {
      Completion completion = ask_(connection, index);
      completion.retries = retry;
      const std::lock_guard lock(mutex_);
      ++answers_;
      return completion;
    } catch (const TransientError& error) {
      if (retry < rule_.retries && sleep(backoff.wait(retry + 1, error.retry_after_seconds()))) {
        continue;
      }
      const std::lock_guard lock(mutex_);
      const std::string what = fmt::format("{} (tries: {})", error.what(), retry + 1);
      // One request that the server always fails at is no lost server.
      if (error.unreachable() && answers_ == answers_before && lost_.empty()) {
        lost_ = what;
        ending_.notify_all();
      }
      return failure(what, retry);
    }
  }
}

// False if the run ends meanwhile.
bool HttpCrew::sleep(double seconds) {
  std::unique_lock lock(mutex_);
  return !ending_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [&] { return abandoned_ || mistake_ != nullptr; });
}

bool HttpCrew::pause(double seconds) {
  std::unique_lock lock(mutex_);
  return !ending_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [&] { return abandoned_ || mistake_ != nullptr || !lost_.empty(); });
}

void HttpCrew::stop() {
  const std::lock_guard lock(mutex_);
  if (working_ == 0) return;
  abandon();
  break_off();
}

void HttpCrew::abandon() {
  abandoned_ = true;
  ending_.notify_all();
  changed_.notify_all();
}

void HttpCrew::break_off() {
  for (HttpConnection* connection : connections_) connection->stop();
}

}  // namespace cupel
