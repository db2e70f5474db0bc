// SGLang /generate (serving-stack.md section C).
#include "cupel/eval/http_connection.h"
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

// {"type": "stop", "matched": "Question" or the id of an end token}, {"type": "length"},
// {"type": "abort"}; early versions had the type alone.
StopReason read_reason(const json& reason) {
  if (reason.is_string()) return read_stop_reason(reason.get<std::string>(), nullptr);
  const auto matched = reason.find("matched");
  return read_stop_reason(reason.at("type").get<std::string>(),
                          matched == reason.end() ? nullptr : &*matched);
}

class SglangGenerate final : public Protocol {
 public:
  Api api() const override { return Api::kGenerate; }
  std::string path() const override { return "/generate"; }

  std::string body(const CompletionRequest& request, const AskOptions& options) const override {
    json sampling = {{"temperature", request.temperature},
                     {"max_new_tokens", request.max_new_tokens}};
    if (!request.stop.empty()) sampling["stop"] = request.stop;
    if (request.temperature > 0) sampling["sampling_seed"] = request.seed;
    json body = {
        {"text", request.prompt}, {"sampling_params", sampling}, {"stream", options.stream}};
    if (options.logprobs) {
      body["return_logprob"] = true;
      body["top_logprobs_num"] = 2;
    }
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  std::string likelihood_body(const std::string& text, const AskOptions&) const override {
    const json body = {{"text", text},
                       {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 1}}},
                       {"return_logprob", true},
                       {"logprob_start_len", 0},
                       {"stream", false}};
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  std::optional<TextLikelihood> read_likelihood_part(const json& part) const override {
    const json& meta = part.at("meta_info");
    const json* tokens = find_member(meta, "input_token_logprobs");
    if (tokens == nullptr) return std::nullopt;
    std::vector<json> values;  // of [log probability, id, text or null]
    for (const json& token : *tokens) values.push_back(token.at(0));
    return sum_likelihood(values, meta.at("prompt_tokens").get<int>());
  }

  // Each event of a stream holds the answer from its beginning.
  void read_part(const json& part, bool streamed, Answer& answer) const override {
    const auto text = part.at("text").get<std::string>();
    // The last event may take back the beginning of a stop string.
    if (!text.starts_with(answer.text) && !answer.text.starts_with(text)) {
      throw WrongPart(
          "text that does not continue the event before (a server that streams "
          "increments cannot be asked with --stream)");
    }
    answer.text = text;
    const json& meta = part.at("meta_info");
    TokenUsage usage{.prompt = meta.at("prompt_tokens").get<int>(),
                     .cached_prompt = 0,
                     .completion = meta.at("completion_tokens").get<int>()};
    if (const json* cached = find_member(meta, "cached_tokens")) {
      usage.cached_prompt = cached->get<int>();
    }
    answer.usage = usage;
    if (const json* reason = find_member(meta, "finish_reason")) {
      answer.stop_reason = read_reason(*reason);
    } else if (!streamed) {
      throw WrongPart("no finish_reason");
    }
    read_tokens(part, meta, answer);
  }

  static void read_tokens(const json& part, const json& meta, Answer& answer) {
    answer.output_ids.clear();
    if (const json* ids = find_member(part, "output_ids")) {
      read_ids(*ids, answer.output_ids);
    } else if (const json* tokens = find_member(meta, "output_token_logprobs")) {
      // [log probability, id, text or null]
      for (const json& token : *tokens) answer.output_ids.push_back(token.at(1));
    }
    if (const json* steps = find_member(meta, "output_top_logprobs")) {
      answer.margin = {};
      for (const json& step : *steps) {
        std::vector<double> values;
        for (const json& token : step) values.push_back(token.at(0));
        answer.margin.add_step(values);
      }
    }
  }
};

}  // namespace

const Protocol& sglang_generate() {
  static const SglangGenerate instance;
  return instance;
}

}  // namespace cupel
