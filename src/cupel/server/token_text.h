// Tokens as text in replies, which are UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/engine/request.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

// Bytes in, whole characters out: what may be the beginning of one waits for the next bytes. Bytes
// that are no UTF-8 become U+FFFD.
class Utf8Stream {
 public:
  std::string feed(std::string_view bytes);
  // The end: an unfinished character becomes U+FFFD.
  std::string finish();

 private:
  std::string held_;
};

// The text of a token; where that is not valid UTF-8 "bytes:\xe2\x96", as OpenAI writes it, so that
// different tokens stay different.
std::string token_label(const Tokenizer& tokenizer, std::int32_t id);

// The text of ids as valid UTF-8.
std::string ids_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids);

nlohmann::json finish_name(FinishReason finish);  // "stop", "length"

// What ended an output, as SGLang's matched_stop: a stop string, the id of an end token, or null.
nlohmann::json matched_stop(const Generation& generation);

// Compact, with U+FFFD for what is not UTF-8.
std::string dump(const nlohmann::json& value);

// A server-sent event.
std::string sse(std::string_view data);

}  // namespace cupel
