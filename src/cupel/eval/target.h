// What an evaluation asks: the engine in this process, or a server.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cupel {

struct CompletionRequest {
  std::string prompt;  // text; BOS is part of it where the task wants it
  int max_new_tokens = 512;
  float temperature = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> stop;  // the output ends before the first of them
};

enum class StopReason { kEos, kStopString, kLength, kError };

struct Completion {
  std::string text;                      // without the stop string
  std::vector<std::int32_t> output_ids;  // as generated, the stop string's tokens included
  StopReason stop_reason = StopReason::kError;
  std::string error;  // set when stop_reason is kError
  int prompt_tokens = 0;
  int cached_prompt_tokens = 0;  // prompt tokens that were not computed again
  int completion_tokens = 0;
  // Smallest difference of the two largest logits over the answer, and the step where it was (0 =
  // the first generated token); NaN and -1 where the target does not tell.
  float min_margin = 0;
  int min_margin_step = -1;
  std::vector<float> margins = {};  // of each step; empty where the target does not tell
  // NaN where the target does not tell.
  double queue_seconds = 0;        // from submission to the first computed prompt token
  double first_token_seconds = 0;  // from submission to the first generated token
  double total_seconds = 0;
  int retries = 0;  // further tries after failures of a server
};

// How likely a model finds a text. The first token is given, not scored.
struct TextLikelihood {
  double log_probability = 0;  // natural logarithm, summed over the scored tokens
  int tokens = 0;              // scored
};

class Target {
 public:
  virtual ~Target() = default;

  // Runs all requests, at most `concurrency` at a time (0 = no limit), and calls done(index,
  // completion) once for each as it ends, from the calling thread, in any order. A request that
  // fails is reported as kError and does not end the others. An exception from `done` (a full disk)
  // ends the call: the target stops its work and lets it pass. Throws InputError where the target
  // cannot be asked at all; what was answered before has been reported.
  virtual void complete(std::span<const CompletionRequest> requests, int concurrency,
                        const std::function<void(std::size_t, const Completion&)>& done) = 0;

  // Of each text, in order; a begin-of-sentence token is part of the text. Throws InputError where
  // the target does not tell the log probabilities of a prompt, InfrastructureError where it fails.
  virtual std::vector<TextLikelihood> likelihoods(std::span<const std::string> texts);

  // Names the model and the settings that change its answers; goes into every record.
  virtual std::string model_fingerprint() const = 0;
};

}  // namespace cupel
