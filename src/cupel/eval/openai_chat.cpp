// OpenAI /v1/chat/completions. The whole prompt, examples included, is one user message: the
// server puts its chat template around it.
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

class OpenaiChat final : public Protocol {
 public:
  Api api() const override { return Api::kChat; }
  std::string path() const override { return "/v1/chat/completions"; }

  std::string body(const CompletionRequest& request, const AskOptions& options) const override {
    json body = openai_body(request, options);
    body["messages"] = json::array({{{"role", "user"}, {"content", request.prompt}}});
    if (options.logprobs) {
      body["logprobs"] = true;
      body["top_logprobs"] = 2;
    }
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  void read_part(const json& part, bool streamed, Answer& answer) const override {
    const json* choice = read_openai_part(part, streamed, answer);
    if (choice == nullptr) return;
    if (streamed) {
      // An event may bring a role, a thought or nothing instead of content.
      const json& delta = choice->at("delta");
      if (find_member(delta, "content") != nullptr) answer.text += read_text(delta, "content");
    } else {
      // Null where the answer ended within the model's thoughts.
      answer.text += read_text(choice->at("message"), "content");
    }
    const json* logprobs = find_member(*choice, "logprobs");
    const json* steps = logprobs == nullptr ? nullptr : find_member(*logprobs, "content");
    if (steps == nullptr) return;
    for (const json& step : *steps) {
      std::vector<double> values;
      for (const json& top : step.at("top_logprobs")) values.push_back(top.at("logprob"));
      answer.margin.add_step(values);
    }
  }
};

}  // namespace

const Protocol& openai_chat() {
  static const OpenaiChat instance;
  return instance;
}

}  // namespace cupel
