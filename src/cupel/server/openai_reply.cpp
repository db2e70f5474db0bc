#include "cupel/server/openai_reply.h"

#include "cupel/server/token_text.h"

namespace cupel {

using nlohmann::json;

json openai_head(const ServerContext& context, std::string_view id_prefix,
                 std::string_view object) {
  return {{"id", new_reply_id(id_prefix)},
          {"object", object},
          {"created", unix_seconds()},
          {"model", context.options.names.front()}};
}

void reply_whole(Exchange& exchange, json head, Usage usage, const Results& results,
                 const std::function<json(std::size_t, const Generation&)>& choice) {
  head["choices"] = json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    head["choices"].push_back(choice(i, *results[i]));
    usage.add(*results[i]);
  }
  head["usage"] = usage.json();
  exchange.reply(200, dump(head));
}

void OpenAiStream::put(json choice, std::string& out) const {
  json chunk = head_;
  chunk["choices"] = json::array({std::move(choice)});
  if (include_usage_) chunk["usage"] = nullptr;
  out += sse(dump(chunk));
}

void OpenAiStream::end(std::string& out) {
  if (include_usage_) {
    json chunk = head_;
    chunk["choices"] = json::array();
    chunk["usage"] = usage_.json();
    out += sse(dump(chunk));
  }
  out += sse("[DONE]");
}

}  // namespace cupel
