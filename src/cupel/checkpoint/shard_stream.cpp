#include "cupel/checkpoint/shard_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "cupel/base/file.h"
#include "cupel/checkpoint/prefetch.h"
#include "cupel/checkpoint/weight_rows.h"

namespace cupel {

struct ShardStream::State {
  struct Job {
    std::size_t bytes = 0;
    std::function<void()> run;
  };

  std::size_t most_bytes = 0;
  std::mutex mutex;
  std::condition_variable wake;   // of the background
  std::condition_variable ready;  // of the caller
  std::deque<Job> jobs;
  std::size_t waiting_bytes = 0;
  std::vector<std::vector<std::uint8_t>> spare;
  bool busy = false;
  bool stopping = false;
  std::exception_ptr error;  // nothing is written after the first

  std::optional<SafetensorsWriter> writer;  // the background's
  std::jthread thread;                      // last: ends before what it uses

  void work() {
    for (;;) {
      Job job;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || !jobs.empty(); });
        if (jobs.empty()) return;
        job = std::move(jobs.front());
        jobs.pop_front();
        busy = true;
      }
      std::exception_ptr failure;
      try {
        job.run();
      } catch (...) {
        failure = std::current_exception();
      }
      job.run = {};  // frees its bytes
      const std::scoped_lock lock(mutex);
      busy = false;
      waiting_bytes -= job.bytes;
      if (failure) {
        error = failure;
        for (const Job& dropped : jobs) waiting_bytes -= dropped.bytes;
        jobs.clear();
      }
      ready.notify_all();
    }
  }

  void add(std::size_t bytes, std::function<void()> run) {
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return error || waiting_bytes == 0 || waiting_bytes < most_bytes; });
    if (error) std::rethrow_exception(error);
    jobs.push_back({bytes, std::move(run)});
    waiting_bytes += bytes;
    wake.notify_one();
  }
};

ShardStream::ShardStream(std::size_t most_bytes) : state_(std::make_unique<State>()) {
  state_->most_bytes = most_bytes;
  state_->thread = std::jthread([state = state_.get()] { state->work(); });
}

ShardStream::~ShardStream() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_one();
}

void ShardStream::begin(const std::filesystem::path& shard, std::vector<TensorSpec> tensors) {
  state_->add(0, [state = state_.get(), shard, tensors = std::move(tensors)] {
    state->writer.emplace(shard, tensors);
  });
}

void ShardStream::append(std::vector<std::uint8_t> bytes) {
  const std::size_t size = bytes.size();
  state_->add(size, [state = state_.get(), bytes = std::move(bytes)]() mutable {
    state->writer->append(std::as_bytes(std::span(bytes)));
    constexpr std::size_t kWorthKeeping = 1u << 20;
    if (bytes.size() < kWorthKeeping) return;
    const std::scoped_lock lock(state->mutex);
    state->spare.push_back(std::move(bytes));
  });
}

std::vector<std::uint8_t> ShardStream::spare() {
  const std::scoped_lock lock(state_->mutex);
  if (state_->spare.empty()) return {};
  std::vector<std::uint8_t> storage = std::move(state_->spare.back());
  state_->spare.pop_back();
  return storage;
}

void ShardStream::copy(std::span<const std::byte> mapped) {
  constexpr std::size_t kPiece = 8u << 20;
  for (std::size_t at = 0; at < mapped.size(); at += kPiece) {
    const auto piece = mapped.subspan(at, std::min(kPiece, mapped.size() - at));
    prefetch(piece);
    state_->add(piece.size(), [state = state_.get(), piece] {
      state->writer->append(piece);
      release_pages(piece);
    });
  }
}

void ShardStream::commit(const std::filesystem::path& note, std::string text) {
  const std::size_t size = text.size();
  state_->add(size, [state = state_.get(), note, text = std::move(text)] {
    state->writer->commit();
    state->writer.reset();
    write_atomically(note, text);
  });
}

void ShardStream::finish() {
  std::unique_lock lock(state_->mutex);
  state_->ready.wait(lock, [&] { return state_->jobs.empty() && !state_->busy; });
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace cupel
