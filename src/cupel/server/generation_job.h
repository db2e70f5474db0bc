// The sequences that one HTTP request asks for: from the engine's thread to the request's.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cupel/engine/engine_thread.h"
#include "cupel/server/metrics.h"

namespace cupel {

// A token of a sequence, or its end.
struct JobEvent {
  std::size_t index = 0;  // of the sequence in the job
  std::int32_t id = 0;
  std::string text = {};                        // as TokenEvent::text
  std::optional<TokenLogprobs> logprobs = {};   // if asked for
  std::shared_ptr<const Generation> done = {};  // the end; the others are unset
};

class GenerationJob {
 public:
  // Submits the requests; `tokens`: report tokens, not only ends. Throws as EngineThread::submit
  // does, and then none of the requests runs on.
  GenerationJob(EngineThread& engine, Metrics& metrics, std::vector<GenerationRequest> requests,
                bool tokens);
  // Cancels what is not done.
  ~GenerationJob();
  GenerationJob(const GenerationJob&) = delete;
  GenerationJob& operator=(const GenerationJob&) = delete;

  // The next event, waiting for it; nullopt after the end of all sequences. From one thread.
  std::optional<JobEvent> next();
  // The same without waiting.
  std::optional<JobEvent> next_if_there();
  // Sequences whose end was not taken.
  std::size_t open() const { return open_; }

  // Ends all sequences as cancelled. Thread-safe.
  void cancel();

 private:
  class Channel;

  std::optional<JobEvent> take(bool wait);

  EngineThread& engine_;
  std::size_t open_;
  std::shared_ptr<Channel> channel_;
  std::vector<RequestId> ids_;
};

// Throws HttpError for a sequence that did not end by itself: 500 for a failure of the model, 503
// for a server that stops.
void require_answer(const Generation& generation);

}  // namespace cupel
