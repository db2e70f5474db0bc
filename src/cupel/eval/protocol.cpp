#include "cupel/eval/protocol.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/eval/http_connection.h"
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

// Far more than errors show, so that a key is found before the text is cut.
constexpr std::size_t kLookedAt = 4096;

// Parses a part. A text that begins as an object and ends before it does was cut on its way.
json parse_part(const std::string& part, const std::string& where, const std::string& shown) {
  try {
    return json::parse(part);
  } catch (const json::exception& error) {
    const std::size_t first = part.find_first_not_of(" \t\r\n");
    const auto* syntax = dynamic_cast<const json::parse_error*>(&error);
    if (first != std::string::npos && part[first] == '{' && syntax != nullptr &&
        syntax->byte > part.size()) {
      throw TransientError(where + ": the reply was cut: " + shown, true, std::nullopt,
                           FailureKind::kCut);
    }
    throw InputError(where, "JSON", shown.empty() ? "an empty body" : shown);
  }
}

// Servers report a failure after their status went out as an object in its place.
void check_error_member(const json& part, const std::string& where, const std::string& shown) {
  const json* error = find_member(part, "error");
  if (error == nullptr && part.value("object", json()) == "error") error = &part;
  if (error == nullptr) return;
  const json* code = find_member(*error, "code");
  const bool client_side =
      code != nullptr && code->is_number_integer() && *code >= 400 && *code < 500 && *code != 429;
  if (client_side) throw InputError(where, "an answer", shown);
  throw TransientError(where + ": the server reports " + shown, false);
}

}  // namespace

void SmallestMargin::add_step(const std::vector<double>& logprobs) {
  const int step = steps_++;
  all_.push_back(std::numeric_limits<float>::quiet_NaN());
  if (logprobs.size() < 2) return;
  std::vector<double> best = logprobs;
  std::partial_sort(best.begin(), best.begin() + 2, best.end(), std::greater<>());
  const double difference = best[0] - best[1];
  all_.back() = static_cast<float>(difference);
  if (!value_ || difference < *value_) {
    value_ = difference;
    step_ = step;
  }
}

void read_object(Api api, const std::string& part, const PartSource& source,
                 const std::function<void(const json&)>& reader) {
  const std::string shown = first_bytes(without_key(part.substr(0, kLookedAt), source.api_key));
  const json parsed = parse_part(part, source.url, shown);
  const auto wrong = [&](const std::string& why) {
    return InputError(source.url, fmt::format("a reply of the {} interface", api_name(api)),
                      fmt::format("{} in {}", without_key(why, source.api_key), shown));
  };
  if (!parsed.is_object()) throw wrong("no object");
  check_error_member(parsed, source.url, shown);
  try {
    reader(parsed);
  } catch (const json::exception& error) {
    // "[json.exception.out_of_range.403] key 'choices' not found": without the library's name.
    const std::string what = error.what();
    throw wrong(what.substr(std::min(what.find("] ") + 2, what.size())));
  } catch (const WrongPart& error) {
    throw wrong(error.what());
  }
}

void Protocol::read(const std::string& part, bool streamed, const PartSource& source,
                    Answer& answer) const {
  read_object(api(), part, source,
              [&](const json& parsed) { read_part(parsed, streamed, answer); });
}

std::string Protocol::likelihood_body(const std::string&, const AskOptions&) const {
  return {};
}

std::optional<TextLikelihood> Protocol::read_likelihood(const std::string& reply,
                                                        const PartSource& source) const {
  std::optional<TextLikelihood> found;
  read_object(api(), reply, source,
              [&](const json& parsed) { found = read_likelihood_part(parsed); });
  return found;
}

std::optional<TextLikelihood> Protocol::read_likelihood_part(const json&) const {
  return std::nullopt;
}

std::optional<TextLikelihood> sum_likelihood(const std::vector<json>& logprobs, int prompt_tokens) {
  const auto count = static_cast<std::size_t>(std::max(prompt_tokens, 0));
  if (count < 2 || logprobs.size() < count) return std::nullopt;
  TextLikelihood sum;
  for (std::size_t i = 1; i < count; ++i) {
    if (!logprobs[i].is_number()) return std::nullopt;
    sum.log_probability += logprobs[i].get<double>();
    ++sum.tokens;
  }
  return sum;
}

const Protocol& protocol(Api api) {
  switch (api) {
    case Api::kCompletions:
      break;
    case Api::kChat:
      return openai_chat();
    case Api::kGenerate:
      return sglang_generate();
  }
  return openai_completions();
}

const json* find_member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string read_text(const json& object, const char* key) {
  const json& text = object.at(key);
  return text.is_null() ? std::string() : text.get<std::string>();
}

void read_ids(const json& ids, std::vector<std::int32_t>& out) {
  for (const json& id : ids) out.push_back(id.get<std::int32_t>());
}

StopReason read_stop_reason(const std::string& reason, const json* matched) {
  if (reason == "length") return StopReason::kLength;
  if (reason == "eos" || reason == "eos_token") return StopReason::kEos;
  if (reason == "stop_sequence") return StopReason::kStopString;
  if (reason == "stop") {
    return matched == nullptr || matched->is_string() ? StopReason::kStopString : StopReason::kEos;
  }
  if (reason == "abort" || reason == "error") {
    throw TransientError("the server gave the answer up (" + reason + ")", false);
  }
  throw WrongPart("finish reason \"" + first_bytes(reason) + "\"");
}

TokenUsage read_usage(const json& usage) {
  TokenUsage read{.prompt = usage.at("prompt_tokens").get<int>(),
                  .cached_prompt = 0,
                  .completion = usage.at("completion_tokens").get<int>()};
  if (const json* details = find_member(usage, "prompt_tokens_details")) {
    if (const json* cached = find_member(*details, "cached_tokens")) {
      read.cached_prompt = cached->get<int>();
    }
  }
  return read;
}

json openai_body(const CompletionRequest& request, const AskOptions& options) {
  json body = {{"model", options.served_model},
               {"max_tokens", request.max_new_tokens},
               {"temperature", request.temperature},
               {"stream", options.stream}};
  if (!request.stop.empty()) body["stop"] = request.stop;
  // Without sampling a seed changes nothing, and not every server knows the parameter.
  if (request.temperature > 0) body["seed"] = request.seed;
  if (options.stream) body["stream_options"] = {{"include_usage", true}};
  return body;
}

const json* read_openai_part(const json& part, bool streamed, Answer& answer) {
  if (const json* usage = find_member(part, "usage")) answer.usage = read_usage(*usage);
  const json& choices = part.at("choices");
  if (choices.size() > 1) throw WrongPart("more than one choice");
  if (choices.empty()) {
    if (!streamed) throw WrongPart("no choice");
    return nullptr;
  }
  const json& choice = choices.at(0);
  const json& reason = choice.at("finish_reason");
  if (!reason.is_null()) {
    const char* const keys[] = {"stop_reason", "matched_stop"};  // vLLM, SGLang
    const json* matched = nullptr;
    for (const char* key : keys) {
      const auto found = choice.find(key);
      if (found != choice.end()) matched = &*found;
    }
    answer.stop_reason = read_stop_reason(reason.get<std::string>(), matched);
  } else if (!streamed) {
    throw WrongPart("no finish_reason");
  }
  if (const json* ids = find_member(choice, "token_ids")) read_ids(*ids, answer.output_ids);
  return &choice;
}

}  // namespace cupel
