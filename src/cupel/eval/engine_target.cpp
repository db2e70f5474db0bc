#include "cupel/eval/engine_target.h"

#include <vector>

#include "cupel/base/error.h"

namespace cupel {
namespace {

StopReason stop_reason(FinishReason finish) {
  switch (finish) {
    case FinishReason::kEos:
      return StopReason::kEos;
    case FinishReason::kStopString:
      return StopReason::kStopString;
    case FinishReason::kLength:
      return StopReason::kLength;
    case FinishReason::kCancelled:
    case FinishReason::kError:
      break;
  }
  return StopReason::kError;
}

}  // namespace

void EngineTarget::complete(std::span<const CompletionRequest> requests, int concurrency,
                            const std::function<void(std::size_t, const Completion&)>& done) {
  std::vector<GenerationRequest> generations;
  generations.reserve(requests.size());
  for (const CompletionRequest& request : requests) {
    GenerationRequest& generation = generations.emplace_back();
    generation.prompt_ids = engine_.tokenizer().encode(request.prompt);
    generation.max_new_tokens = request.max_new_tokens;
    generation.sampling.temperature = request.temperature;
    generation.sampling.seed = request.seed;
    generation.stop = request.stop;
  }
  engine_.generate(generations, concurrency, [&](std::size_t i, const Generation& g) {
    done(i, {.text = g.text,
             .output_ids = g.output_ids,
             .stop_reason = stop_reason(g.finish),
             .error = g.error,
             .prompt_tokens = static_cast<int>(generations[i].prompt_ids.size()),
             .cached_prompt_tokens = g.cached_prompt_tokens,
             .completion_tokens = static_cast<int>(g.output_ids.size()),
             .min_margin = g.min_margin,
             .min_margin_step = g.min_margin_step,
             .margins = g.margins,
             .queue_seconds = g.queue_seconds,
             .first_token_seconds = g.first_token_seconds,
             .total_seconds = g.total_seconds});
  });
}

std::vector<TextLikelihood> EngineTarget::likelihoods(std::span<const std::string> texts) {
  std::vector<GenerationRequest> requests;
  for (const std::string& text : texts) {
    GenerationRequest& request = requests.emplace_back();
    request.prompt_ids = engine_.tokenizer().encode(text);
    if (request.prompt_ids.size() < 2) {
      throw InputError("text", "two tokens or more", "\"" + text + "\"");
    }
    request.max_new_tokens = 1;
    request.prompt_logprobs = true;
  }
  std::vector<TextLikelihood> all(texts.size());
  engine_.generate(requests, 0, [&](std::size_t i, const Generation& g) {
    if (g.finish == FinishReason::kError) throw InfrastructureError("engine", g.error);
    for (const TokenLogprobs& token : g.prompt_logprobs) all[i].log_probability += token.logprob;
    all[i].tokens = static_cast<int>(g.prompt_logprobs.size());
  });
  return all;
}

}  // namespace cupel
