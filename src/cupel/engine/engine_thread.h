// An engine with a thread of its own: many threads submit and cancel, one steps.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "cupel/engine/engine.h"

namespace cupel {

class EngineThread {
 public:
  // The engine must outlive this and is not touched by others meanwhile.
  explicit EngineThread(Engine& engine);
  // Ends all requests as cancelled.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // As Engine::submit. The callbacks are called from the engine's thread, without a lock held, and
  // must not throw. `on_done` may come before the call returns. After stop(): throws
  // InfrastructureError.
  RequestId submit(GenerationRequest request, RequestCallbacks callbacks = {});
  // The request ends as cancelled before the next step, if it is not done by then.
  void cancel(RequestId id);
  // Takes no further requests; ends those under way at once, or lets them finish. Returns when all
  // have ended.
  void stop(bool finish);

  EngineStats stats() const;
  // Before the next step.
  void flush_prefixes();

 private:
  struct Incoming {
    RequestId id;
    GenerationRequest request;
    RequestCallbacks callbacks;
    Clock::time_point when;
  };

  void run();
  // Waits until there is something to do, unless `busy`, and hands what came in to the engine;
  // false when it is time to end.
  bool take(bool busy);

  Engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Incoming> incoming_;
  std::vector<RequestId> cancelled_;
  bool flush_ = false, stopping_ = false, finish_ = false;
  std::size_t moving_ = 0;  // taken from incoming_, not yet in stats_
  EngineStats stats_;
  std::thread thread_;
};

}  // namespace cupel
