#include "cupel/engine/engine_thread.h"

#include <utility>

#include "cupel/base/error.h"

namespace cupel {

EngineThread::EngineThread(Engine& engine)
    : engine_(engine), stats_(engine.stats()), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  stop(false);
}

RequestId EngineThread::submit(GenerationRequest request, RequestCallbacks callbacks) {
  engine_.validate(request, "request");
  const std::scoped_lock lock(mutex_);
  if (stopping_) throw InfrastructureError("engine", "stopped");
  const auto limit = static_cast<std::size_t>(engine_.options().max_waiting);
  if (incoming_.size() + moving_ + stats_.waiting >= limit) throw QueueFull(limit);
  const RequestId id = engine_.reserve_id();
  incoming_.push_back({id, std::move(request), std::move(callbacks), Clock::now()});
  wake_.notify_one();
  return id;
}

void EngineThread::cancel(RequestId id) {
  const std::scoped_lock lock(mutex_);
  cancelled_.push_back(id);
  wake_.notify_one();
}

void EngineThread::flush_prefixes() {
  const std::scoped_lock lock(mutex_);
  flush_ = true;
  wake_.notify_one();
}

void EngineThread::stop(bool finish) {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    finish_ = finish;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

EngineStats EngineThread::stats() const {
  const std::scoped_lock lock(mutex_);
  EngineStats stats = stats_;
  stats.waiting += incoming_.size() + moving_;
  return stats;
}

bool EngineThread::take(bool busy) {
  std::vector<Incoming> incoming;
  std::vector<RequestId> cancelled;
  bool flush = false, end = false;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] {
      return busy || stopping_ || flush_ || !incoming_.empty() || !cancelled_.empty();
    });
    incoming = std::exchange(incoming_, {});
    cancelled = std::exchange(cancelled_, {});
    flush = std::exchange(flush_, false);
    end = stopping_ && (!finish_ || (!busy && incoming.empty()));
    moving_ = incoming.size();
  }
  for (Incoming& i : incoming) {
    engine_.submit(std::move(i.request), std::move(i.callbacks), i.when, i.id);
  }
  for (const RequestId id : cancelled) engine_.cancel(id);
  if (flush) engine_.flush_prefixes();
  if (end) engine_.cancel_all();
  const std::scoped_lock lock(mutex_);
  moving_ = 0;
  stats_ = engine_.stats();
  return !end;
}

void EngineThread::run() {
  bool busy = false;
  while (take(busy)) {
    busy = engine_.step();
  }
}

}  // namespace cupel
