// The batched generation loop.
//
// A step takes one token of every running sequence that has its prompt done, and prompt chunks of
// the others up to a budget of rows. Sequences join and leave between steps.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cupel/engine/engine.h"
#include "cupel/text/stop_strings.h"

namespace cupel {

class GenerationLoop {
 public:
  using Done = std::function<void(std::size_t, const Generation&)>;

  GenerationLoop(Engine& engine, std::span<const GenerationRequest> requests, int concurrency,
                 const Done& done);
  ~GenerationLoop();
  GenerationLoop(const GenerationLoop&) = delete;
  GenerationLoop& operator=(const GenerationLoop&) = delete;

  void run();

 private:
  struct Running {
    std::size_t index;  // of the request
    const GenerationRequest* request;
    SequenceState state;
    std::size_t prompt_done = 0;   // prompt tokens in the state
    std::int32_t last_token = -1;  // sampled, not yet fed
    StopMatcher stops;
    Generation result;
  };

  void compute_shared_prefix();
  void admit();
  void step();
  // Feeds a sampled token to the request's bookkeeping; true if the request has ended.
  bool accept(Running& r, const SampledToken& token);
  void finish(Running& r);
  double seconds() const;

  Engine& engine_;
  std::span<const GenerationRequest> requests_;
  std::size_t limit_;
  const Done& done_;
  std::chrono::steady_clock::time_point start_;
  std::size_t next_ = 0;  // request to admit
  std::deque<Running> running_;
  SequenceState prefix_;
  std::size_t prefix_length_ = 0;
};

}  // namespace cupel
