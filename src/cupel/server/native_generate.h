// SGLang's /generate.
#pragma once

#include "cupel/server/context.h"
#include "cupel/server/http_server.h"

namespace cupel {

// Answers a request. Throws HttpError.
//
// text or input_ids, one or a list; sampling_params, one or one for each; return_logprob,
// logprob_start_len, top_logprobs_num, return_text_in_logprobs; stream (each event holds the answer
// from its beginning). A list, or n above 1, is answered by a list; events of a stream then have an
// "index".
void handle_generate(const ServerContext& context, Exchange& exchange);

}  // namespace cupel
