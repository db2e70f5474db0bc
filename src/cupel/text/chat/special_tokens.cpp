#include "cupel/text/chat/special_tokens.h"

#include <vector>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {

std::int32_t end_think_token(const Tokenizer& tokenizer) {
  const std::vector<std::int32_t> ids = tokenizer.encode(kEndThinkText);
  if (ids.size() != 1) {
    throw InputError("tokenizer", "</think> as one token", fmt::format("{} tokens", ids.size()));
  }
  return ids.front();
}

}  // namespace cupel
