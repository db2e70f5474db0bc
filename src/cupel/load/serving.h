// Requests that arrive by a schedule, whether earlier ones have ended or not (an open loop), or
// with at most so many under way; each timed by itself, as SGLang's bench_serving does.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cupel/load/bench_target.h"
#include "cupel/load/workload.h"

namespace cupel {

struct ServingLoad {
  Workload workload;
  int num_prompts = 1000;
  double request_rate = std::numeric_limits<double>::infinity();  // a second; infinite: all at once
  int max_concurrency = 0;                                        // 0: no limit
  bool ignore_eos = true;
  std::uint64_t seed = 1;
};

// Throws InputError for what is out of range.
void check_load(const ServingLoad& load);

// Seconds are from the beginning of the run.
struct ServedRequest {
  int index = 0;
  double scheduled = 0;  // by the arrival process
  // When it should have gone out, from which its times count: `scheduled`, or, with a limit of
  // concurrency, when a place was free, whichever is later.
  double due = 0;
  double sent = 0;  // when the client got to it; sent - due is the client's own lag
  double end = 0;   // when the last event came, or the failure showed
  std::optional<double> first_token;
  std::vector<double> gaps;  // SequenceTimes::gaps
  int input_len = 0;         // asked for
  int output_len = 0;
  int prompt_tokens = 0;  // counted by the server
  int cached_tokens = 0;
  int completion_tokens = 0;
  int events = 0;      // that brought tokens
  std::string reason;  // LoadReply::reason, kInterruptedReason or kNotSentReason; empty: completed
  std::string error;
  int status = 0;

  bool completed() const { return reason.empty(); }
};

struct ServingRun {
  std::vector<ServedRequest> requests;
  double duration = 0;  // seconds, to the end of the last request
  bool lost = false;    // the server was not there any more; the rest was not sent
  bool interrupted = false;
};

struct ServingHooks {
  std::function<bool()> interrupted = {};
  // Once for each request, in any order, from the calling thread.
  std::function<void(const ServedRequest&)> done = {};
};

// Throws InfrastructureError if this machine allows no threads at all.
ServingRun run_serving(const BenchTarget& target, const ServingLoad& load,
                       const ServingHooks& hooks);

}  // namespace cupel
