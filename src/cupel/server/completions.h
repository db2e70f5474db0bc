// OpenAI's /v1/completions.
#pragma once

#include "cupel/server/context.h"
#include "cupel/server/http_server.h"

namespace cupel {

// Answers a request. Throws HttpError.
//
// prompt: a text, a list of texts, a list of token ids, or a list of such lists. Beside OpenAI's
// parameters: top_k, min_p, repetition_penalty, min_tokens, ignore_eos, stop_token_ids,
// return_token_ids. max_tokens may be 0 with echo. A choice has "matched_stop" as SGLang's. The
// log probabilities of a choice are those of all generated tokens, an end token or the tokens of a
// stop string included.
void handle_completions(const ServerContext& context, Exchange& exchange);

}  // namespace cupel
