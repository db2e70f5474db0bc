// What a body of /v1/chat/completions asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cupel/server/context.h"
#include "cupel/text/chat/output_parser.h"

namespace cupel {

struct ChatRequest {
  GenerationRequest prompt;
  int n = 1;
  OutputParser::Options parsing;
  std::optional<std::int32_t> reasoning_end;  // thinking mode: the token of </think>
  bool token_ids = false;
  bool stream = false;
  bool include_usage = false;
};

// Throws HttpError, InputError.
ChatRequest read_chat(std::string_view body, const ServerContext& context);

}  // namespace cupel
