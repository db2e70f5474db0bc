#include "cupel/load/serving.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/eval/http_crew.h"
#include "cupel/eval/runner.h"
#include "cupel/load/arrivals.h"
#include "cupel/load/interrupt_watch.h"
#include "cupel/load/load_reply.h"
#include "cupel/load/load_request.h"

namespace cupel {
namespace {

// One thread and connection a request under way. Without a limit of concurrency a request beyond
// these waits, and its times count that: it was due all the same.
constexpr int kMostConnections = 8192;
// Apart from those of the prompts, which are 0 and above.
constexpr int kArrivals = -1;

class Runner {
 public:
  Runner(const BenchTarget& target, const ServingLoad& load, const ServingHooks& hooks)
      : target_(target),
        load_(load),
        hooks_(hooks),
        form_{.api = target.api,
              .served_model = target.identity.model,
              .ignore_eos = load.ignore_eos},
        crew_(target.http, {.retries = 0, .backoff_seconds = 0},
              [this](HttpConnection& connection, std::size_t index) {
                return ask(connection, run_.requests[index]);
              }) {}

  ServingRun run();

 private:
  Completion ask(HttpConnection& connection, ServedRequest& request);
  void begin();
  void end(ServedRequest& request, const Completion& completion);

  const BenchTarget& target_;
  const ServingLoad& load_;
  const ServingHooks& hooks_;
  LoadRequestForm form_;
  HttpCrew crew_;
  ServingRun run_;
  const InterruptWatch* watch_ = nullptr;

  std::mutex mutex_;  // guards the next two until the run has begun
  std::condition_variable begun_changed_;
  bool begun_ = false;
  LoadClock::time_point start_;
};

Completion Runner::ask(HttpConnection& connection, ServedRequest& r) {
  const LoadPrompt prompt = draw_prompt(load_.workload, request_seed(load_.seed, 0, r.index));
  r.input_len = static_cast<int>(prompt.ids.empty() ? prompt.text.size() / 2 : prompt.ids.size());
  r.output_len = prompt.output_len;
  const std::string body = load_body(form_, prompt);
  {
    std::unique_lock lock(mutex_);
    begun_changed_.wait(lock, [&] { return begun_; });
  }
  const double now = seconds_since(start_);
  r.due = load_.max_concurrency > 0 ? std::max(r.scheduled, now) : r.scheduled;
  if (!crew_.pause(r.due - now)) {
    r.reason = kNotSentReason;
    return {};
  }
  r.sent = seconds_since(start_);
  LoadReply reply = stream_reply(connection, target_.http, target_.api, body, 1, start_);
  const SequenceTimes& times = reply.times.sequences().front();
  r.end = reply.end;
  r.first_token = times.first_token;
  r.gaps = times.gaps;
  r.events = times.events;
  if (const auto usage = reply.times.usage()) {
    r.prompt_tokens = usage->prompt;
    r.cached_tokens = usage->cached_prompt;
    r.completion_tokens = usage->completion;
  }
  r.reason = std::move(reply.reason);
  r.error = std::move(reply.error);
  r.status = reply.status;
  if (r.completed()) return {};
  if (watch_->seen()) r.reason = kInterruptedReason;
  if (r.reason == kNoConnectionReason) {
    // The crew gives the server up if nothing else had an answer meanwhile.
    throw TransientError(r.error, true, std::nullopt, FailureKind::kNoConnection);
  }
  return {};
}

// Once all threads are there with their first request at hand: to start a thousand of them takes a
// time that no latency should hold.
void Runner::begin() {
  const std::lock_guard lock(mutex_);
  start_ = LoadClock::now();
  begun_ = true;
  begun_changed_.notify_all();
}

void Runner::end(ServedRequest& r, const Completion& completion) {
  // A request that the crew never asked: `sent` stays at 0.
  if (r.completed() && !r.first_token) {
    r.reason = kNotSentReason;
    r.error = completion.error;
  }
  if (hooks_.done) hooks_.done(r);
}

ServingRun Runner::run() {
  const std::vector<double> arrivals =
      arrival_times(load_.num_prompts, load_.request_rate, request_seed(load_.seed, 0, kArrivals));
  run_.requests.resize(arrivals.size());
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    run_.requests[i].index = static_cast<int>(i);
    run_.requests[i].scheduled = arrivals[i];
  }
  const int connections = load_.max_concurrency > 0 ? load_.max_concurrency : kMostConnections;
  {
    const InterruptWatch watch(hooks_.interrupted, [this] { crew_.stop(); });
    watch_ = &watch;
    crew_.run(
        arrivals.size(), connections,
        [&](std::size_t index, const Completion& completion) {
          end(run_.requests[index], completion);
        },
        [&] { begin(); });
    run_.interrupted = watch.seen();
  }
  bool answered = false, given_up = false;
  for (const ServedRequest& r : run_.requests) {
    run_.duration = std::max(run_.duration, r.end);
    answered = answered || r.completed();
    given_up = given_up || r.reason == kNotSentReason;
    run_.lost = run_.lost || r.reason == kNoConnectionReason;
  }
  // One connection that a busy server refuses is no lost server.
  run_.lost = run_.lost && !run_.interrupted && (given_up || !answered);
  return std::move(run_);
}

}  // namespace

void check_load(const ServingLoad& load) {
  check_workload(load.workload);
  if (load.num_prompts < 1) {
    throw InputError("--num-prompts", "1 or more", std::to_string(load.num_prompts));
  }
  if (!(load.request_rate > 0)) {
    throw InputError("--request-rate", "requests a second above 0, or inf",
                     fmt::format("{:g}", load.request_rate));
  }
  if (load.max_concurrency < 0) {
    throw InputError("--max-concurrency", "0 or more", std::to_string(load.max_concurrency));
  }
}

ServingRun run_serving(const BenchTarget& target, const ServingLoad& load,
                       const ServingHooks& hooks) {
  return Runner(target, load, hooks).run();
}

}  // namespace cupel
