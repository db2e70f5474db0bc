// Counts of tokens in OpenAI's replies.
#pragma once

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/engine/request.h"

namespace cupel {

// A prompt counts once, however many answers it has.
class Usage {
 public:
  explicit Usage(const std::vector<GenerationRequest>& prompts) {
    for (const GenerationRequest& prompt : prompts) prompt_ += prompt.prompt_ids.size();
  }

  void add(const Generation& generation) {
    completion_ += generation.output_ids.size();
    cached_ += static_cast<std::size_t>(generation.cached_prompt_tokens);
  }

  nlohmann::json json() const {
    return {{"prompt_tokens", prompt_},
            {"completion_tokens", completion_},
            {"total_tokens", prompt_ + completion_},
            {"prompt_tokens_details", {{"cached_tokens", std::min(cached_, prompt_)}}}};
  }

 private:
  std::size_t prompt_ = 0, completion_ = 0, cached_ = 0;
};

}  // namespace cupel
