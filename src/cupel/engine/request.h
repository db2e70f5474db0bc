// What is asked of the engine, and what it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cupel/base/error.h"
#include "cupel/text/token_constraint.h"

namespace cupel {

// How a token is chosen from logits. Applied in this order: penalties, logit_bias and constraint
// (below), temperature, top_k, top_p (of what top_k left), min_p. Every number depends on the
// request alone.
struct SamplingParams {
  float temperature = 0;  // finite, >= 0; 0 takes the largest logit, ties to the lowest id
  std::uint64_t seed = 0;
  int top_k = 0;    // the k largest; 0 = all
  float top_p = 1;  // the fewest tokens whose probabilities reach top_p; in (0, 1]
  float min_p = 0;  // tokens of at least min_p times the largest probability; in [0, 1]
  // Of tokens in prompt or output, as in CTRL (Keskar et al. 2019): positive logits are divided,
  // others multiplied; > 0.
  float repetition_penalty = 1;
  float frequency_penalty = 0;  // subtracted once for each occurrence in the output
  float presence_penalty = 0;   // subtracted if the token is in the output

  bool penalises() const {
    return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0;
  }
};

struct GenerationRequest {
  std::vector<std::int32_t> prompt_ids;
  int max_new_tokens = 512;
  int min_new_tokens = 0;   // EOS and stop_ids cannot come earlier
  bool ignore_eos = false;  // go on after EOS
  SamplingParams sampling = {};
  std::map<std::int32_t, float> logit_bias = {};  // by token id, added to its logit
  std::vector<std::string> stop = {};             // none empty
  std::vector<std::int32_t> stop_ids = {};        // end as EOS does
  int top_logprobs = -1;         // -1: no log-probabilities; n: of the chosen token and the n best
  bool prompt_logprobs = false;  // also of every prompt token but the first; takes no cached prefix
  // The form of the output. Applied after penalties and bias: what it does not allow cannot come,
  // and EOS and stop_ids come only, and by the limit always, when the output is complete. It takes
  // no ignore_eos, min_new_tokens or stop strings, which would break the form, and a limit of at
  // least shortest() + 1.
  std::shared_ptr<const TokenConstraint> constraint = nullptr;
};

enum class FinishReason { kEos, kStopString, kLength, kCancelled, kError };

// Log-probabilities of the model's own distribution: before penalties, bias and temperature, over
// the tokens that exist.
struct TokenLogprobs {
  std::int32_t id = 0;
  float logprob = 0;
  std::vector<std::pair<std::int32_t, float>> top;  // best first, ties to the lowest id
};

struct Generation {
  std::vector<std::int32_t>
      output_ids;    // as generated, EOS and the tokens of a stop string included
  std::string text;  // bytes, up to the stop string or EOS
  FinishReason finish = FinishReason::kError;
  std::string error;                           // for kError
  std::string stop;                            // the stop string found
  std::vector<TokenLogprobs> logprobs;         // [output_ids.size()] if asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // [prompt_ids.size() - 1] if asked for
  int cached_prompt_tokens = 0;                // that were not computed again
  int preemptions = 0;                         // how often it lost its cache and was computed again
  // Smallest difference of the two largest logits after penalties and bias, of tokens that the
  // constraint allows (infinite where it leaves one), and the output token where it was.
  float min_margin = std::numeric_limits<float>::infinity();
  int min_margin_step = -1;
  std::vector<float> margins;  // [output_ids.size()], that difference for every token
  // Since submission.
  double queue_seconds = 0;  // until its first prompt token was computed
  double first_token_seconds = 0;
  double total_seconds = 0;
};

// A token as it comes. `text` is what became certain with it: bytes that can be no part of a stop
// string. The texts of all tokens, then the rest that comes with the end, make Generation::text.
struct TokenEvent {
  std::int32_t id = 0;
  std::string_view text = {};
  const TokenLogprobs* logprobs = nullptr;  // if asked for
};

using RequestId = std::uint64_t;

// As many requests wait as may; the same call may succeed later.
class QueueFull : public Error {
 public:
  explicit QueueFull(std::size_t limit)
      : Error(ExitCode::kInfrastructure,
              "engine: the queue is full, " + std::to_string(limit) + " requests wait") {}
};

// Called from the thread that steps the engine.
struct RequestCallbacks {
  // The logits [vocab] that the next output token is chosen from, to compare bit by bit. Must not
  // throw.
  std::function<void(std::span<const float>)> on_logits = {};
  std::function<void(const TokenEvent&)> on_token = {};
  std::function<void(const Generation&)> on_done = {};  // once, last
};

}  // namespace cupel
