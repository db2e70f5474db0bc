#include "cupel/cli/prompt_check.h"

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {

void check_prompts(const Task& task, const Tokenizer& tokenizer, const ModelConfig& config) {
  const std::int64_t room = config.max_position_embeddings - task.max_new_tokens;
  for (const TaskItem& item : task.items) {
    const std::string prompt = task.prompt(item);
    // A token has at least one byte: most prompts need no encoding.
    if (static_cast<std::int64_t>(prompt.size()) <= room) continue;
    const auto tokens = static_cast<std::int64_t>(tokenizer.encode(prompt).size());
    if (tokens > room) {
      throw InputError(fmt::format("{} item {}", task.name, item.id),
                       fmt::format("prompt and new tokens within the context of {}",
                                   config.max_position_embeddings),
                       fmt::format("{} + {}", tokens, task.max_new_tokens));
    }
  }
}

}  // namespace cupel
