// OpenAI's /v1/chat/completions.
#pragma once

#include "cupel/server/context.h"
#include "cupel/server/http_server.h"

namespace cupel {

// Answers a request. Throws HttpError.
//
// The prompt is the published one (spec 6.2), BOS included. chat_template_kwargs: thinking,
// reasoning_effort, drop_thinking. Reasoning comes apart as reasoning_content, tool calls as
// tool_calls; what is no well-formed call stays content. Log probabilities are those of all
// generated tokens, whatever they became.
void handle_chat(const ServerContext& context, Exchange& exchange);

}  // namespace cupel
