// The engine: a loaded model, its tokenizer, and text generation for many requests at once.
//
// One thread submits, cancels and steps (EngineThread makes one of many); the pool inside computes.
// Outputs do not depend on which requests run together (DESIGN section 5).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cupel/base/thread_pool.h"
#include "cupel/engine/request.h"
#include "cupel/engine/sampler.h"
#include "cupel/engine/scheduler.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/network.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

struct EngineOptions {
  std::filesystem::path model;
  NetworkOptions network;
  int prefill_chunk = 512;  // prompt tokens of a sequence in one step; 0 = the whole prompt
  int threads = 0;          // 0 = one per hardware thread
  int max_running =
      256;  // sequences that run at once, whatever concurrency a caller asks for; >= 1
  int max_waiting = 4096;           // requests that wait beyond those; >= 1
  std::size_t max_cache_bytes = 0;  // for all sequences and kept prefixes; 0 = a quarter of memory
  bool prefix_cache = true;
  // Asked between the steps of generate(): true ends it with InfrastructureError.
  std::function<bool()> stop_requested = {};
};

struct EngineStats {
  std::size_t running = 0, waiting = 0;
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;  // of admitted requests
  std::uint64_t cached_tokens = 0;  // of those, not computed again
  std::uint64_t output_tokens = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t evictions = 0;  // kept prefixes given up for room
  std::size_t kept_prefixes = 0;
  std::size_t cache_bytes = 0, max_cache_bytes = 0;

  double hit_rate() const {
    return prompt_tokens == 0
               ? 0.0
               : static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  }
};

class Engine {
 public:
  // Throws InputError for a faulty checkpoint, tokenizer or option.
  explicit Engine(const EngineOptions& options);

  // Runs the requests, at most `concurrency` at a time (0 = no limit), and calls done(index,
  // result) once for each as it ends; no other request may be under way. Throws InputError before
  // anything runs for a request that cannot be served (see validate). What `done` throws ends the
  // call, and so does options.stop_requested; requests under way are dropped.
  void generate(std::span<const GenerationRequest> requests, int concurrency,
                const std::function<void(std::size_t, const Generation&)>& done);

  // Throws InputError, naming `where`: an empty prompt, ids outside the vocabulary, prompt and
  // limit beyond the context, more cache than there is, a field out of its range, a limit below the
  // shortest output of the constraint. Thread-safe.
  void validate(const GenerationRequest& request, std::string_view where) const;

  // Queues a request. Throws as validate does, and QueueFull. `id`: from reserve_id, 0 = the next.
  RequestId submit(GenerationRequest request, RequestCallbacks callbacks = {},
                   Clock::time_point submitted = Clock::now(), RequestId id = 0);
  // A number for a request to come. Thread-safe.
  RequestId reserve_id() { return next_id_++; }
  // Ends a request as kCancelled, its done call included; false if there is none of that number.
  bool cancel(RequestId id);
  // Ends all requests.
  void cancel_all();
  // Computes one step and makes the calls it leads to; false if there was nothing to do. Where a
  // call throws, the calls after it are not made, and the engine can go on.
  bool step();
  // Gives up all kept prefixes.
  void flush_prefixes() { scheduler_->prefixes().clear(); }
  EngineStats stats() const;

  // Logits [1 + feed.size(), vocab] fp32: after the prompt, then after each fed token.
  std::vector<float> logits(std::span<const std::int32_t> prompt,
                            std::span<const std::int32_t> feed);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const ModelConfig& config() const { return network_->config(); }
  Network& network() { return *network_; }
  const Sampler& sampler() const { return sampler_; }
  const EngineOptions& options() const { return options_; }
  // Names checkpoint, tokenizer and every setting that changes logits.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  struct Delivery;

  // Takes the token that a row of logits gives.
  Delivery accept(Sequence& s, std::span<const float> logits, const FaultOrigin& origin);
  // Notes the log-probabilities of the prompt tokens after rows [first, ...) of the prompt.
  void accept_prompt(Sequence& s, std::size_t first, std::span<const float> logits) const;
  bool ends_at(const Sequence& s, std::int32_t id) const;
  // What the constraint of a sequence lets come next, and what ends it where it may end.
  std::vector<std::uint64_t> allowed_tokens(Sequence& s) const;

  EngineOptions options_;
  ThreadPool pool_;
  Tokenizer tokenizer_;
  std::unique_ptr<Network> network_;
  Sampler sampler_;
  std::string fingerprint_;
  std::unique_ptr<Scheduler> scheduler_;
  std::atomic<RequestId> next_id_ = 1;
  std::uint64_t steps_ = 0, output_tokens_ = 0;
};

}  // namespace cupel
