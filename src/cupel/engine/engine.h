// The engine: a loaded model, its tokenizer, and text generation for many requests at once.
//
// One thread calls; the pool inside computes. Outputs do not depend on which requests run together
// (DESIGN section 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cupel/attention/backend.h"
#include "cupel/base/thread_pool.h"
#include "cupel/engine/sampler.h"
#include "cupel/kernels/numerics.h"
#include "cupel/model/network.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

struct EngineOptions {
  std::filesystem::path model;
  NetworkOptions network;
  int prefill_chunk = 0;  // prompt tokens of a sequence in one step; 0 = the whole prompt
  int threads = 0;        // 0 = one per hardware thread
  int max_running =
      256;  // sequences that run at once, whatever concurrency a caller asks for; >= 1
};

struct GenerationRequest {
  std::vector<std::int32_t> prompt_ids;
  int max_new_tokens = 512;
  float temperature = 0;  // finite, >= 0
  std::uint64_t seed = 0;
  std::vector<std::string> stop = {};  // none empty
};

enum class FinishReason { kEos, kStopString, kLength, kError };

struct Generation {
  std::vector<std::int32_t>
      output_ids;    // as generated, EOS and the tokens of a stop string included
  std::string text;  // bytes, up to the stop string or EOS
  FinishReason finish = FinishReason::kError;
  std::string error;             // for kError
  int cached_prompt_tokens = 0;  // of a prefix shared with other requests
  float min_margin = std::numeric_limits<float>::infinity();
  int min_margin_step = -1;
  std::vector<float> margins;  // of each of output_ids
  double queue_seconds = 0;    // until its first prompt token was computed
  double first_token_seconds = 0;
  double total_seconds = 0;
};

class Engine {
 public:
  // Throws InputError for a faulty checkpoint, tokenizer or option.
  explicit Engine(const EngineOptions& options);

  // Runs the requests, at most `concurrency` at a time (0 = no limit), and calls done(index,
  // result) once for each as it ends. A prefix that all prompts share is computed once. Throws
  // InputError before anything runs for a request that cannot be served: empty prompt, ids outside
  // the vocabulary, prompt and limit beyond the context, a field out of its range.
  void generate(std::span<const GenerationRequest> requests, int concurrency,
                const std::function<void(std::size_t, const Generation&)>& done);

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
  void check(const GenerationRequest& request, std::size_t index) const;

  EngineOptions options_;
  ThreadPool pool_;
  Tokenizer tokenizer_;
  std::unique_ptr<Network> network_;
  Sampler sampler_;
  std::string fingerprint_;
};

}  // namespace cupel
