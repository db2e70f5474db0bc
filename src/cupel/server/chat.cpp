#include "cupel/server/chat.h"

#include <fmt/format.h>

#include "cupel/server/chat_request.h"
#include "cupel/server/openai_reply.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/server/token_text.h"
#include "cupel/text/chat/openai_messages.h"

namespace cupel {
namespace {

using nlohmann::json;

constexpr std::string_view kIdPrefix = "chatcmpl";

json token_entry(const Tokenizer& tokenizer, std::int32_t id, float logprob) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  json values = json::array();
  for (const char byte : bytes) values.push_back(static_cast<unsigned char>(byte));
  return {{"token", token_label(tokenizer, id)}, {"logprob", logprob}, {"bytes", values}};
}

json logprob_entry(const Tokenizer& tokenizer, const TokenLogprobs& token) {
  json entry = token_entry(tokenizer, token.id, token.logprob);
  entry["top_logprobs"] = json::array();
  for (const auto& [id, logprob] : token.top) {
    entry["top_logprobs"].push_back(token_entry(tokenizer, id, logprob));
  }
  return entry;
}

json finish_of(const Generation& generation, bool calls) {
  const json name = finish_name(generation.finish);
  return calls && name == "stop" ? json("tool_calls") : name;
}

json whole_choice(const ServerContext& context, const ChatRequest& request, std::size_t index,
                  const Generation& generation) {
  ChatMessage message = parse_output(generation.text, request.parsing);
  for (ToolCall& call : message.tool_calls) call.id = new_reply_id("call");
  json choice = {{"index", index},
                 // Through text: the members of an answer have an order, those here need none.
                 {"message", json::parse(message_to_openai(message).dump())},
                 {"logprobs", nullptr},
                 {"finish_reason", finish_of(generation, !message.tool_calls.empty())},
                 {"matched_stop", matched_stop(generation)}};
  if (request.prompt.top_logprobs >= 0) {
    json entries = json::array();
    for (const TokenLogprobs& token : generation.logprobs) {
      entries.push_back(logprob_entry(context.engine.tokenizer(), token));
    }
    choice["logprobs"] = {{"content", std::move(entries)}};
  }
  if (request.token_ids) choice["token_ids"] = generation.output_ids;
  return choice;
}

// What a piece of output adds to a message.
class Delta {
 public:
  void add(const OutputEvent& event) {
    switch (event.kind) {
      case OutputEvent::Kind::kReasoning:
        append("reasoning_content", event.text);
        break;
      case OutputEvent::Kind::kContent:
      // The client has seen the beginning of a call; all of it is text after all.
      case OutputEvent::Kind::kToolCallAbandoned:
        append("content", event.text);
        break;
      case OutputEvent::Kind::kToolCallBegin:
        call(event.index) = {{"index", event.index},
                             {"id", new_reply_id("call")},
                             {"type", "function"},
                             {"function", {{"name", event.text}, {"arguments", ""}}}};
        break;
      case OutputEvent::Kind::kToolArguments: {
        json& arguments = call(event.index)["function"]["arguments"];
        arguments = arguments.is_null() ? event.text : arguments.get<std::string>() + event.text;
        break;
      }
      case OutputEvent::Kind::kToolCallEnd:
        break;
    }
  }
  bool empty() const { return value_.empty(); }
  json take() { return std::move(value_); }

 private:
  void append(const char* key, const std::string& text) {
    if (text.empty()) return;
    json& member = value_[key];
    member = member.is_null() ? text : member.get<std::string>() + text;
  }
  json& call(std::size_t index) {
    json& calls = value_["tool_calls"];
    for (json& call : calls) {
      if (call["index"] == index) return call;
    }
    calls.push_back({{"index", index}});
    return calls.back();
  }

  json value_ = json::object();
};

class ChatStream final : public OpenAiStream {
 public:
  ChatStream(const ServerContext& context, ChatRequest request)
      : OpenAiStream(openai_head(context, kIdPrefix, "chat.completion.chunk"),
                     Usage({request.prompt}, request.reasoning_end), request.include_usage),
        context_(context),
        request_(std::move(request)) {
    for (int i = 0; i < request_.n; ++i) choices_.emplace_back(request_.parsing);
  }

  void write(const JobEvent& event, std::string& out) override {
    Choice& state = choices_[event.index];
    if (!state.begun)
      put_delta(event.index, {{"role", "assistant"}, {"content", ""}}, json::object(), out);
    state.begun = true;
    Delta delta;
    const auto events = event.done ? state.parser.finish() : state.parser.feed(event.text);
    for (const OutputEvent& part : events) {
      delta.add(part);
      if (part.kind == OutputEvent::Kind::kToolCallEnd) state.calls = true;
    }
    json more = json::object();
    if (event.done) {
      count(*event.done);
      more["finish_reason"] = finish_of(*event.done, state.calls);
      more["matched_stop"] = matched_stop(*event.done);
    } else {
      if (event.logprobs) {
        more["logprobs"] = {{"content", json::array({logprob_entry(context_.engine.tokenizer(),
                                                                   *event.logprobs)})}};
      }
      if (request_.token_ids) more["token_ids"] = json::array({event.id});
      if (delta.empty() && more.empty()) return;
    }
    put_delta(event.index, delta.take(), more, out);
  }

 private:
  struct Choice {
    explicit Choice(const OutputParser::Options& options) : parser(options) {}
    OutputParser parser;
    bool begun = false;
    bool calls = false;
  };

  void put_delta(std::size_t index, json delta, const json& more, std::string& out) const {
    json choice = {{"index", index},
                   {"delta", std::move(delta)},
                   {"logprobs", nullptr},
                   {"finish_reason", nullptr}};
    choice.update(more);
    put(std::move(choice), out);
  }

  const ServerContext& context_;
  ChatRequest request_;
  std::vector<Choice> choices_;
};

}  // namespace

void handle_chat(const ServerContext& context, Exchange& exchange) {
  ChatRequest request = read_chat(exchange.body(), context);
  auto sequences = repeated({request.prompt}, request.n, context);
  if (request.stream) {
    stream_all(context, exchange, std::move(sequences),
               std::make_unique<ChatStream>(context, std::move(request)));
    return;
  }
  const Results results = generate_all(context, exchange, std::move(sequences));
  reply_whole(exchange, openai_head(context, kIdPrefix, "chat.completion"),
              Usage({request.prompt}, request.reasoning_end), results,
              [&](std::size_t index, const Generation& generation) {
                return whole_choice(context, request, index, generation);
              });
}

}  // namespace cupel
