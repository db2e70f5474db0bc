// The parameters that say how tokens are chosen and where an output ends.
#pragma once

#include <string>
#include <vector>

#include "cupel/server/context.h"
#include "cupel/server/fields.h"

namespace cupel {

// Those that are numbers, the seed left out; what is not there keeps its value. Throws HttpError.
void read_sampling_numbers(Fields& fields, SamplingParams& params);

// The parameters that both OpenAI interfaces share, vLLM's and SGLang's additions included:
// temperature, top_p, top_k, min_p, seed, penalties, logit_bias, stop, stop_token_ids, min_tokens,
// ignore_eos. Not the limit of tokens. Throws HttpError.
void read_openai_sampling(Fields& fields, const ServerContext& context, GenerationRequest& request);

// The members of SGLang's sampling_params, but n. Throws HttpError.
void read_sglang_sampling(Fields& fields, const ServerContext& context, GenerationRequest& request);

// How many tokens a request may make: `wanted`, or, without one, `usual` as far as the context and
// the cache go.
int output_limit(std::optional<int> wanted, int usual, std::size_t prompt_tokens,
                 const ServerContext& context);

// n sequences of each request. The seed of the i-th is higher by i, so that they differ.
std::vector<GenerationRequest> repeated(const std::vector<GenerationRequest>& requests, int n,
                                        const ServerContext& context);

// "model": one of the served names, the folder, or "default". Throws HttpError 404.
void read_model(Fields& fields, const ServerContext& context);

// What a text becomes as a prompt: with BOS in front where the server adds it and the text does not
// begin with it.
std::vector<std::int32_t> encode_prompt(std::string_view text, const ServerContext& context);

// Throws HttpError 400 where the engine would not take one of the requests.
void validate_all(const std::vector<GenerationRequest>& requests, const ServerContext& context);

}  // namespace cupel
