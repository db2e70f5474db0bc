#include "cupel/server/completions_request.h"

#include <fmt/format.h>

#include "cupel/server/fields.h"
#include "cupel/server/http_error.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/server/token_text.h"

namespace cupel {
namespace {

using nlohmann::json;

constexpr int kUsualTokens = 16;  // OpenAI's

class PromptReader {
 public:
  PromptReader(const ServerContext& context, CompletionsRequest& request)
      : context_(context), request_(request) {}

  void read(const json* prompt) {
    if (prompt == nullptr) throw wrong_parameter("prompt", "a text or token ids", "none");
    const bool list = prompt->is_array() && !prompt->empty();
    if (prompt->is_array() && !list) throw wrong_parameter("prompt", "a prompt", "an empty list");
    if (!list || prompt->front().is_number()) return add(*prompt, "prompt");
    for (std::size_t i = 0; i < prompt->size(); ++i) {
      add((*prompt)[i], fmt::format("prompt[{}]", i));
    }
  }

 private:
  void add(const json& prompt, const std::string& where) {
    GenerationRequest& request = request_.prompts.emplace_back();
    if (prompt.is_string()) {
      request_.texts.push_back(prompt.get<std::string>());
      request.prompt_ids = encode_prompt(request_.texts.back(), context_);
    } else {
      request.prompt_ids = read_token_ids(prompt, where);
      request_.texts.push_back(ids_text(context_.engine.tokenizer(), request.prompt_ids));
    }
    if (request.prompt_ids.empty()) {
      throw wrong_parameter(where, "a prompt of at least one token", "none");
    }
  }

  const ServerContext& context_;
  CompletionsRequest& request_;
};

}  // namespace

void read_stream_options(Fields& fields, bool& stream, bool& include_usage) {
  stream = fields.boolean("stream").value_or(false);
  const json* options = fields.find("stream_options");
  if (options == nullptr) return;
  Fields inner(*options, "stream_options");
  include_usage = inner.boolean("include_usage").value_or(false);
  inner.refuse("continuous_usage_stats", "usage comes once, at the end");
  inner.ignore({"include_obfuscation"});
  inner.end(false);
}

CompletionsRequest read_completions(std::string_view body, const ServerContext& context) {
  const json parsed = parse_body(body, context.options.limits.json_depth);
  Fields fields(parsed);
  read_model(fields, context);

  CompletionsRequest request;
  PromptReader(context, request).read(fields.find("prompt"));
  GenerationRequest shared;
  read_openai_sampling(fields, context, shared);
  request.n = fields.count("n", 1).value_or(1);
  request.echo = fields.boolean("echo").value_or(false);
  request.logprobs = fields.count("logprobs", 0, context.options.limits.top_logprobs).value_or(-1);
  request.token_ids = fields.boolean("return_token_ids").value_or(false);
  read_stream_options(fields, request.stream, request.include_usage);

  const auto limit = fields.count("max_tokens", 0);
  request.no_output = limit == 0;
  if (request.no_output && !request.echo) {
    throw wrong_parameter("max_tokens", "at least 1 without echo", "0");
  }
  if (request.stream && request.echo && request.logprobs >= 0) {
    throw HttpError(400, "logprobs: with echo only without stream", "logprobs");
  }
  shared.top_logprobs = request.logprobs;
  shared.prompt_logprobs = request.echo && request.logprobs >= 0;

  fields.refuse("best_of", "only 1", 1);
  fields.refuse("suffix", "there is no infilling");
  fields.refuse("response_format", "only in /v1/chat/completions and /generate");
  fields.refuse("json_schema", "only in /v1/chat/completions and /generate");
  fields.refuse("regex", "there are no constraints by regular expressions");
  fields.refuse("ebnf", "there are no constraints by grammars");
  fields.refuse("prompt_logprobs", "use echo with logprobs");
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "priority",
                 "prompt_cache_key", "rid", "request_id"});
  fields.end(context.options.allow_unknown);

  for (GenerationRequest& prompt : request.prompts) {
    shared.prompt_ids = std::move(prompt.prompt_ids);
    shared.max_new_tokens =
        request.no_output ? 1
                          : output_limit(limit, kUsualTokens, shared.prompt_ids.size(), context);
    prompt = shared;
  }
  validate_all(request.prompts, context);
  return request;
}

}  // namespace cupel
