// What a body of /v1/completions asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cupel/server/context.h"

namespace cupel {

struct CompletionsRequest {
  std::vector<GenerationRequest> prompts;
  std::vector<std::string> texts;  // of the prompts, for echo
  int n = 1;
  bool echo = false;
  bool no_output = false;  // max_tokens 0: the prompt alone
  int logprobs = -1;       // -1: none
  bool token_ids = false;
  bool stream = false;
  bool include_usage = false;
};

// Throws HttpError.
CompletionsRequest read_completions(std::string_view body, const ServerContext& context);

// stream and stream_options of the OpenAI interfaces.
class Fields;
void read_stream_options(Fields& fields, bool& stream, bool& include_usage);

}  // namespace cupel
