// A request on its way: its tokens, its place in the queue, its state in the network.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "cupel/engine/request.h"
#include "cupel/engine/sampler.h"
#include "cupel/model/step.h"
#include "cupel/text/stop_strings.h"

namespace cupel {

using Clock = std::chrono::steady_clock;

struct Sequence {
  Sequence(RequestId number, GenerationRequest asked, RequestCallbacks calls,
           Clock::time_point when)
      : id(number),
        request(std::move(asked)),
        callbacks(std::move(calls)),
        submitted(when),
        tokens(request.prompt_ids),
        stops(request.stop),
        constraint(request.constraint ? request.constraint->start() : nullptr) {}

  RequestId id;  // ascending in order of arrival
  GenerationRequest request;
  RequestCallbacks callbacks;
  Clock::time_point submitted;

  std::vector<std::int32_t> tokens;  // prompt, then output
  SequenceState state;               // slot < 0 while it holds no cache
  // Positions at which a copy of the state is to be kept, ahead of state.length.
  std::set<std::size_t> keep_at;
  bool started = false;  // was admitted once

  StopMatcher stops;
  // Belongs to the output: a preempted sequence, or a cached prefix, does not touch it.
  std::unique_ptr<ConstraintState> constraint;
  TokenHistory history;  // if something penalises
  std::size_t told = 0;  // bytes of the text that went out with tokens
  Generation result;

  bool holds_cache() const { return state.slot >= 0; }
  std::size_t computed() const { return static_cast<std::size_t>(state.length); }
  // Tokens that wait to be computed: one when it decodes.
  std::size_t pending() const { return tokens.size() - computed(); }
  bool decodes() const { return pending() == 1 && tokens.size() > request.prompt_ids.size(); }
};

}  // namespace cupel
