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

 private:
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
