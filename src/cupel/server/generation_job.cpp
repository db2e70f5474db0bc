#include "cupel/server/generation_job.h"

#include <utility>

#include "cupel/server/http_error.h"

namespace cupel {

// Never makes the engine wait: it holds at most the tokens that the requests may give.
class GenerationJob::Channel {
 public:
  void push(JobEvent event) {
    {
      const std::scoped_lock lock(mutex_);
      events_.push_back(std::move(event));
    }
    there_.notify_one();
  }

  std::optional<JobEvent> pop(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) there_.wait(lock, [&] { return !events_.empty(); });
    if (events_.empty()) return std::nullopt;
    JobEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<JobEvent> events_;
};

GenerationJob::GenerationJob(EngineThread& engine, Metrics& metrics,
                             std::vector<GenerationRequest> requests, bool tokens)
    : engine_(engine), open_(requests.size()), channel_(std::make_shared<Channel>()) {
  try {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto timing = std::make_shared<TokenTiming>(metrics, requests[i].prompt_ids.size());
      // The channel outlives a client that is gone.
      ids_.push_back(engine.submit(
          std::move(requests[i]),
          {.on_logits = {},
           .on_token =
               [channel = channel_, timing, tokens, i](const TokenEvent& token) {
                 timing->token();
                 if (!tokens) return;
                 channel->push({.index = i,
                                .id = token.id,
                                .text = std::string(token.text),
                                .logprobs = token.logprobs == nullptr
                                                ? std::nullopt
                                                : std::optional(*token.logprobs)});
               },
           .on_done =
               [channel = channel_, timing, i](const Generation& generation) {
                 timing->end(generation);
                 channel->push(
                     {.index = i, .done = std::make_shared<const Generation>(generation)});
               }}));
    }
  } catch (...) {
    cancel();
    throw;
  }
}

GenerationJob::~GenerationJob() {
  if (open_ > 0) cancel();
}

void GenerationJob::cancel() {
  for (const RequestId id : ids_) engine_.cancel(id);
}

std::optional<JobEvent> GenerationJob::take(bool wait) {
  if (open_ == 0) return std::nullopt;
  std::optional<JobEvent> event = channel_->pop(wait);
  if (event && event->done) --open_;
  return event;
}

std::optional<JobEvent> GenerationJob::next() {
  return take(true);
}

std::optional<JobEvent> GenerationJob::next_if_there() {
  return take(false);
}

void require_answer(const Generation& generation) {
  if (generation.finish == FinishReason::kError) throw HttpError(500, generation.error);
  if (generation.finish == FinishReason::kCancelled) {
    throw HttpError(503, "the request was cancelled: the server stops");
  }
}

}  // namespace cupel
