// Counts of tokens in OpenAI's replies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/engine/request.h"

namespace cupel {

// A prompt counts once, however many answers it has. Reasoning is what comes up to `reasoning_end`
// and that token itself, as SGLang counts it: all of an output that has none. Without it there is
// no reasoning. SGLang and OpenAI have different places for that count; it is in both.
class Usage {
 public:
  explicit Usage(const std::vector<GenerationRequest>& prompts,
                 std::optional<std::int32_t> reasoning_end = std::nullopt)
      : reasoning_end_(reasoning_end) {
    for (const GenerationRequest& prompt : prompts) prompt_ += prompt.prompt_ids.size();
  }

  void add(const Generation& generation) {
    completion_ += generation.output_ids.size();
    cached_ += static_cast<std::size_t>(generation.cached_prompt_tokens);
    if (reasoning_end_) reasoning_ += through(*reasoning_end_, generation.output_ids);
  }

  nlohmann::json json() const {
    return {{"prompt_tokens", prompt_},
            {"completion_tokens", completion_},
            {"total_tokens", prompt_ + completion_},
            {"reasoning_tokens", reasoning_},
            {"prompt_tokens_details", {{"cached_tokens", std::min(cached_, prompt_)}}},
            {"completion_tokens_details", {{"reasoning_tokens", reasoning_}}}};
  }

 private:
  // Tokens up to the first `token`, with it.
  static std::size_t through(std::int32_t token, const std::vector<std::int32_t>& output) {
    const auto end = std::find(output.begin(), output.end(), token);
    return static_cast<std::size_t>(end - output.begin()) + (end == output.end() ? 0 : 1);
  }

  std::optional<std::int32_t> reasoning_end_;
  std::size_t prompt_ = 0, completion_ = 0, cached_ = 0, reasoning_ = 0;
};

}  // namespace cupel
