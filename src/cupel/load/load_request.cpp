#include "cupel/load/load_request.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

json generate_body(const LoadRequestForm& form, const char* key, json prompt, int output_len) {
  return {{key, std::move(prompt)},
          {"sampling_params",
           {{"temperature", 0}, {"max_new_tokens", output_len}, {"ignore_eos", form.ignore_eos}}},
          {"stream", true}};
}

json openai_body(const LoadRequestForm& form, const char* key, json prompt, int output_len) {
  CompletionRequest request;
  request.max_new_tokens = output_len;
  json body = openai_body(request, AskOptions{.served_model = form.served_model, .stream = true});
  body[key] = std::move(prompt);
  // A server that does not know the parameter may refuse it.
  if (form.ignore_eos) body["ignore_eos"] = true;
  return body;
}

}  // namespace

std::string load_path(Api api) {
  return protocol(api).path();
}

std::string load_body(const LoadRequestForm& form, const LoadPrompt& prompt) {
  const bool ids = !prompt.ids.empty();
  const json content = ids ? json(prompt.ids) : json(prompt.text);
  switch (form.api) {
    case Api::kGenerate:
      return generate_body(form, ids ? "input_ids" : "text", content, prompt.output_len).dump();
    case Api::kCompletions:
      return openai_body(form, "prompt", content, prompt.output_len).dump();
    case Api::kChat:
      break;
  }
  json messages = json::array({{{"role", "user"}, {"content", content}}});
  return openai_body(form, "messages", std::move(messages), prompt.output_len).dump();
}

std::string batch_body(const LoadRequestForm& form, std::span<const LoadPrompt> prompts) {
  if (form.api == Api::kChat) {
    throw InputError("--api", "generate or completions, which take several prompts in one request",
                     api_name(form.api));
  }
  json all = json::array();
  for (const LoadPrompt& prompt : prompts) all.push_back(prompt.ids);
  const int output_len = prompts.front().output_len;
  return form.api == Api::kGenerate
             ? generate_body(form, "input_ids", std::move(all), output_len).dump()
             : openai_body(form, "prompt", std::move(all), output_len).dump();
}

}  // namespace cupel
