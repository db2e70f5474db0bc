// OpenAI /v1/completions, as SGLang, vLLM and llama.cpp serve it.
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

class OpenaiCompletions final : public Protocol {
 public:
  Api api() const override { return Api::kCompletions; }
  std::string path() const override { return "/v1/completions"; }

  std::string body(const CompletionRequest& request, const AskOptions& options) const override {
    json body = openai_body(request, options);
    body["prompt"] = request.prompt;
    if (options.logprobs) body["logprobs"] = 2;
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  // The prompt comes back before the answer, with the log probability of each of its tokens.
  std::string likelihood_body(const std::string& text, const AskOptions& options) const override {
    const json body = {{"model", options.served_model},
                       {"prompt", text},
                       {"max_tokens", 1},
                       {"temperature", 0},
                       {"logprobs", 1},
                       {"echo", true},
                       {"stream", false}};
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  std::optional<TextLikelihood> read_likelihood_part(const json& part) const override {
    const json* logprobs = find_member(part.at("choices").at(0), "logprobs");
    const json* values = logprobs == nullptr ? nullptr : find_member(*logprobs, "token_logprobs");
    if (values == nullptr) return std::nullopt;
    return sum_likelihood(values->get<std::vector<json>>(), read_usage(part.at("usage")).prompt);
  }

  void read_part(const json& part, bool streamed, Answer& answer) const override {
    const json* choice = read_openai_part(part, streamed, answer);
    if (choice == nullptr) return;
    answer.text += read_text(*choice, "text");
    const json* logprobs = find_member(*choice, "logprobs");
    const json* steps = logprobs == nullptr ? nullptr : find_member(*logprobs, "top_logprobs");
    if (steps == nullptr) return;
    for (const json& step : *steps) {  // text of a token -> log probability, or null
      std::vector<double> values;
      for (const json& value : step) values.push_back(value.get<double>());
      answer.margin.add_step(values);
    }
  }
};

}  // namespace

const Protocol& openai_completions() {
  static const OpenaiCompletions instance;
  return instance;
}

}  // namespace cupel
