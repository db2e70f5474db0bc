#include "cupel/eval/engine_target.h"

#include <vector>

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
             .queue_seconds = g.queue_seconds,
             .first_token_seconds = g.first_token_seconds,
             .total_seconds = g.total_seconds});
  });
}

}  // namespace cupel
