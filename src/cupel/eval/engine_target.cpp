#include "cupel/eval/engine_target.h"

#include <algorithm>
#include <cmath>
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
    case FinishReason::kError:
      break;
  }
  return StopReason::kError;
}

double log_softmax(std::span<const float> logits, std::size_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return logits[id] - largest - std::log(sum);
}

}  // namespace

void EngineTarget::complete(std::span<const CompletionRequest> requests, int concurrency,
                            const std::function<void(std::size_t, const Completion&)>& done) {
  std::vector<GenerationRequest> generations;
  generations.reserve(requests.size());
  for (const CompletionRequest& request : requests) {
    generations.push_back({.prompt_ids = engine_.tokenizer().encode(request.prompt),
                           .max_new_tokens = request.max_new_tokens,
                           .temperature = request.temperature,
                           .seed = request.seed,
                           .stop = request.stop});
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
  std::vector<TextLikelihood> all;
  for (const std::string& text : texts) {
    const std::vector<std::int32_t> ids = engine_.tokenizer().encode(text);
    if (ids.size() < 2) throw InputError("text", "two tokens or more", "\"" + text + "\"");
    const std::span<const std::int32_t> given(ids);
    const std::vector<float> logits =
        engine_.logits(given.first(1), given.subspan(1, ids.size() - 2));
    const std::size_t vocabulary = logits.size() / (ids.size() - 1);
    TextLikelihood sum;
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const std::span<const float> row(logits.data() + (i - 1) * vocabulary, vocabulary);
      sum.log_probability += log_softmax(row, static_cast<std::size_t>(ids[i]));
      ++sum.tokens;
    }
    all.push_back(sum);
  }
  return all;
}

}  // namespace cupel
