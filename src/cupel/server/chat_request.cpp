#include "cupel/server/chat_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "cupel/server/completions_request.h"
#include "cupel/server/fields.h"
#include "cupel/server/http_error.h"
#include "cupel/server/output_form.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/text/chat/openai_messages.h"
#include "cupel/text/chat/special_tokens.h"

namespace cupel {
namespace {

using nlohmann::json;

enum class ToolChoice { kNone, kAuto, kRequired };

class ChatReader {
 public:
  ChatReader(std::string_view body, const json& parsed, const ServerContext& context)
      : fields_(parsed),
        ordered_(parse_chat_json(body, "body", context.options.limits.json_depth)),
        context_(context) {}

  ChatRequest read() {
    read_model(fields_, context_);
    read_openai_sampling(fields_, context_, request_.prompt);
    request_.n = fields_.count("n", 1).value_or(1);
    request_.token_ids = fields_.boolean("return_token_ids").value_or(false);
    read_stream_options(fields_, request_.stream, request_.include_usage);
    read_logprobs();
    read_thinking();
    read_messages();
    read_tools();
    read_response_format();
    refuse_others();

    if (form_.thinking) request_.reasoning_end = end_think_token(context_.engine.tokenizer());
    request_.parsing = {.mode = options_.mode, .tool_calls = !tools_.empty()};
    request_.prompt.prompt_ids =
        context_.engine.tokenizer().encode(context_.encoder.encode(messages_, options_));
    const auto limit = fields_.count("max_completion_tokens", 1);
    const auto older = fields_.count("max_tokens", 1);
    fields_.end(context_.options.allow_unknown);
    request_.prompt.max_new_tokens =
        output_limit(limit ? limit : older, context_.options.chat_tokens,
                     request_.prompt.prompt_ids.size(), context_);
    if (form_.constrains()) {
      request_.prompt.constraint = context_.forms.output(form_);
    }
    context_.engine.validate(request_.prompt, "request");
    return std::move(request_);
  }

 private:
  void read_logprobs() {
    const bool wanted = fields_.boolean("logprobs").value_or(false);
    const auto top = fields_.count("top_logprobs", 0, context_.options.limits.top_logprobs);
    if (top && !wanted) throw HttpError(400, "top_logprobs: only with logprobs", "top_logprobs");
    if (wanted) request_.prompt.top_logprobs = top.value_or(0);
  }

  // "thinking" of the template's arguments decides; without it a reasoning effort that is not
  // "none" asks for thinking.
  void read_thinking() {
    std::optional<bool> thinking;
    std::optional<std::string> effort = fields_.text("reasoning_effort");
    if (const json* given = fields_.find("chat_template_kwargs")) {
      Fields arguments(*given, "chat_template_kwargs");
      thinking = arguments.boolean("thinking");
      const auto other_name = arguments.boolean("enable_thinking");
      if (!thinking) thinking = other_name;
      if (const auto inner = arguments.text("reasoning_effort")) effort = inner;
      options_.drop_reasoning = arguments.boolean("drop_thinking").value_or(true);
      arguments.end(context_.options.allow_unknown);
    }
    if (effort) {
      options_.effort = effort_from_name(*effort);
      if (!options_.effort) {
        throw wrong_parameter("reasoning_effort", "none, low, high or max", shown(json(*effort)));
      }
    }
    const bool asked = effort && *effort != "none";
    options_.mode = thinking.value_or(asked) ? ThinkingMode::kThinking : ThinkingMode::kChat;
    form_.thinking = options_.mode == ThinkingMode::kThinking;
  }

  void read_messages() {
    const json* messages = fields_.find("messages");
    if (messages == nullptr) throw wrong_parameter("messages", "a list of messages", "none");
    const auto most = static_cast<std::size_t>(context_.options.limits.messages);
    if (messages->is_array() && messages->size() > most) {
      throw wrong_parameter("messages", fmt::format("at most {} messages", most),
                            std::to_string(messages->size()));
    }
    messages_ = messages_from_openai(ordered_.at("messages"), "messages");
  }

  void read_tools() {
    if (fields_.find("tools") != nullptr) {
      tools_ = tools_from_openai(ordered_.at("tools"), "tools");
    }
    std::string named;
    const ToolChoice choice = read_choice(named);
    if (choice == ToolChoice::kNone) tools_.clear();
    const bool parallel = fields_.boolean("parallel_tool_calls").value_or(true);
    if (choice == ToolChoice::kRequired) {
      form_.tools = tools_;
      form_.parallel_calls = parallel && named.empty();
      if (!named.empty()) {
        std::erase_if(form_.tools, [&](const ChatTool& tool) { return tool.name != named; });
      }
      if (form_.tools.empty()) {
        throw wrong_parameter("tool_choice", "tools to choose from, and one of their names",
                              named.empty() ? "none" : shown(json(named)));
      }
      form_only_calls_ = true;
    } else if (!parallel && !tools_.empty()) {
      throw HttpError(400,
                      "parallel_tool_calls: false only with tool_choice required or a function",
                      "parallel_tool_calls");
    }
    attach_tools(messages_, tools_);
  }

  ToolChoice read_choice(std::string& named) {
    const json* choice = fields_.find("tool_choice");
    if (choice == nullptr) return ToolChoice::kAuto;
    if (choice->is_string()) {
      if (*choice == "none") return ToolChoice::kNone;
      if (*choice == "auto") return ToolChoice::kAuto;
      if (*choice == "required") return ToolChoice::kRequired;
    } else if (choice->is_object()) {
      Fields object(*choice, "tool_choice");
      object.ignore({"type"});
      if (const json* function = object.find("function")) {
        named = Fields(*function, "tool_choice.function").text("name").value_or("");
        if (!named.empty()) return ToolChoice::kRequired;
      }
    }
    throw wrong_parameter("tool_choice", "none, auto, required or a function's name",
                          shown(*choice));
  }

  void read_response_format() {
    const json* given = fields_.find("response_format");
    if (given == nullptr) return;
    Fields format(*given, "response_format");
    const std::string type = format.text("type").value_or("");
    if (type == "text") return;
    if (form_only_calls_) {
      throw HttpError(400, "response_format: not with a tool_choice that asks for calls",
                      "response_format");
    }
    if (type == "json_object") {
      form_.any_object = true;
    } else if (type == "json_schema") {
      const json* wrapped = format.find("json_schema");
      if (wrapped == nullptr || !wrapped->is_object() || !wrapped->contains("schema")) {
        throw wrong_parameter("response_format.json_schema", "an object with a schema",
                              wrapped == nullptr ? "none" : shown(*wrapped));
      }
      form_.schema = ordered_.at("response_format").at("json_schema").at("schema");
      attach_response_format(messages_, *form_.schema);
    } else {
      throw wrong_parameter("response_format.type", "text, json_object or json_schema",
                            shown(json(type)));
    }
    // Tools may be called instead.
    form_.tools = tools_;
  }

  void refuse_others() {
    fields_.refuse("functions", "use tools");
    fields_.refuse("function_call", "use tool_choice");
    fields_.refuse("audio", "answers are text");
    fields_.refuse("modalities", "answers are text", json::array({"text"}));
    fields_.refuse("web_search_options", "there is no search");
    fields_.refuse("continue_final_message", "mark the last message with wo_eos");
    fields_.refuse("add_generation_prompt", "always true", true);
    fields_.refuse("echo", "only in /v1/completions");
    fields_.refuse("regex", "there are no constraints by regular expressions");
    fields_.refuse("ebnf", "there are no constraints by grammars");
    if (fields_.boolean("separate_reasoning") == false) {
      throw HttpError(400, "separate_reasoning: always true", "separate_reasoning");
    }
    fields_.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "priority",
                    "prompt_cache_key", "rid", "request_id", "stream_reasoning", "verbosity",
                    "prediction"});
  }

  Fields fields_;
  ChatJson ordered_;
  const ServerContext& context_;
  ChatRequest request_;
  PromptOptions options_;
  std::vector<ChatMessage> messages_;
  std::vector<ChatTool> tools_;
  OutputForm form_;
  bool form_only_calls_ = false;
};

}  // namespace

ChatRequest read_chat(std::string_view body, const ServerContext& context) {
  const json parsed = parse_body(body, context.options.limits.json_depth);
  return ChatReader(body, parsed, context).read();
}

}  // namespace cupel
