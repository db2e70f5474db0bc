// What the replies of OpenAI's completions and chats have in common: a head, choices, a count of
// tokens; whole, or in chunks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cupel/server/context.h"
#include "cupel/server/http_server.h"
#include "cupel/server/reply.h"
#include "cupel/server/usage.h"

namespace cupel {

// "id", "object", "created", "model".
nlohmann::json openai_head(const ServerContext& context, std::string_view id_prefix,
                           std::string_view object);

// Replies with the choice of every result.
void reply_whole(Exchange& exchange, nlohmann::json head, Usage usage, const Results& results,
                 const std::function<nlohmann::json(std::size_t, const Generation&)>& choice);

// A stream of chunks of one choice each; at the end the counts, if asked for, and "[DONE]".
class OpenAiStream : public StreamWriter {
 public:
  void end(std::string& out) final;

 protected:
  OpenAiStream(nlohmann::json head, Usage usage, bool include_usage)
      : head_(std::move(head)), usage_(usage), include_usage_(include_usage) {}

  // Counts the tokens of a sequence that ended.
  void count(const Generation& generation) { usage_.add(generation); }
  void put(nlohmann::json choice, std::string& out) const;

 private:
  nlohmann::json head_;
  Usage usage_;
  bool include_usage_;
};

}  // namespace cupel
