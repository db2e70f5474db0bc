// What more than one interface has.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "cupel/eval/protocol.h"

namespace cupel {

// A part that is not as the interface says, in words; Protocol::read adds the place.
class WrongPart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses a reply or an event and hands it to `reader`. Throws as Protocol::read() does, with the
// place: for what is no JSON object, for the server's report of a failure, and for whatever
// `reader` finds wrong (nlohmann's exceptions and WrongPart).
void read_object(Api api, const std::string& part, const PartSource& source,
                 const std::function<void(const nlohmann::json&)>& reader);

// Why the answer ended. `matched` is what the server says beside "stop": the stop string, the id
// of an end token, or null; nullptr where it says nothing, and a stop string is assumed. Throws
// WrongPart for an unknown reason and TransientError for an answer that the server gave up.
StopReason read_stop_reason(const std::string& reason, const nlohmann::json* matched);

// The members of "usage" of the OpenAI interfaces.
TokenUsage read_usage(const nlohmann::json& usage);

// The OpenAI parameters that both text interfaces share.
nlohmann::json openai_body(const CompletionRequest& request, const AskOptions& options);

// The one choice of a reply or an event; nullptr for an event without any. Reads what the OpenAI
// interfaces share: usage, the stop reason, token ids where offered.
const nlohmann::json* read_openai_part(const nlohmann::json& part, bool streamed, Answer& answer);

// A text member; null reads as an empty text.
std::string read_text(const nlohmann::json& object, const char* key);

// Appends a list of token ids.
void read_ids(const nlohmann::json& ids, std::vector<std::int32_t>& out);

// nullptr if `object` is no object, has no such member, or the member is null.
const nlohmann::json* find_member(const nlohmann::json& object, const char* key);

// The sum over a prompt's tokens but the first, from one value a token (null for the first), which
// those of generated tokens may follow; nullopt unless all are there.
std::optional<TextLikelihood> sum_likelihood(const std::vector<nlohmann::json>& logprobs,
                                             int prompt_tokens);

const Protocol& openai_completions();
const Protocol& openai_chat();
const Protocol& sglang_generate();

}  // namespace cupel
