#include "cupel/server/sampling_fields.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cupel/server/http_error.h"

namespace cupel {
namespace {

using nlohmann::json;

void read_logit_bias(Fields& fields, GenerationRequest& request) {
  const json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    throw wrong_parameter(fields.name("logit_bias"), "an object of token ids", shown(*bias));
  }
  for (const auto& member : bias->items()) {
    const std::string& key = member.key();
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      throw wrong_parameter(fields.name("logit_bias"), "token ids as keys", shown(key));
    }
    if (!member.value().is_number()) {
      throw wrong_parameter(fields.name("logit_bias"), "numbers", shown(member.value()));
    }
    request.logit_bias[id] = member.value().get<float>();
  }
}

void read_shared(Fields& fields, const ServerContext& context, const char* seed,
                 const char* min_tokens, GenerationRequest& request) {
  request.sampling = context.defaults;
  read_sampling_numbers(fields, request.sampling);
  request.sampling.seed = static_cast<std::uint64_t>(fields.integer(seed).value_or(0));
  read_logit_bias(fields, request);
  request.stop = fields.texts("stop");
  request.stop_ids = fields.ids("stop_token_ids");
  request.min_new_tokens = fields.count(min_tokens, 0).value_or(0);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  // The text leaves EOS out and shows every other token, whatever these say.
  fields.ignore({"skip_special_tokens", "spaces_between_special_tokens"});
  fields.refuse("no_stop_trim", "stop strings are never part of the text");
  fields.refuse("stop_regex", "stop takes strings only");
}

}  // namespace

void read_sampling_numbers(Fields& fields, SamplingParams& params) {
  params.temperature = fields.number("temperature").value_or(params.temperature);
  params.top_p = fields.number("top_p").value_or(params.top_p);
  // -1 is SGLang's and vLLM's word for all.
  params.top_k = std::max(fields.count("top_k", -1).value_or(params.top_k), 0);
  params.min_p = fields.number("min_p").value_or(params.min_p);
  params.repetition_penalty =
      fields.number("repetition_penalty").value_or(params.repetition_penalty);
  params.frequency_penalty = fields.number("frequency_penalty").value_or(params.frequency_penalty);
  params.presence_penalty = fields.number("presence_penalty").value_or(params.presence_penalty);
}

void read_openai_sampling(Fields& fields, const ServerContext& context,
                          GenerationRequest& request) {
  read_shared(fields, context, "seed", "min_tokens", request);
  fields.refuse("include_stop_str_in_output", "stop strings are never part of the text");
  fields.refuse("use_beam_search", "there is no beam search");
  fields.refuse("length_penalty", "there is no beam search", 1);
  fields.refuse("bad_words", "use logit_bias");
  fields.refuse("allowed_token_ids", "use logit_bias");
  fields.refuse("logits_processors", "there are none");
  fields.refuse("lora_path", "there are no adapters");
}

void read_sglang_sampling(Fields& fields, const ServerContext& context,
                          GenerationRequest& request) {
  read_shared(fields, context, "sampling_seed", "min_new_tokens", request);
  fields.refuse("custom_params", "there are no logit processors of clients");
  fields.refuse("beam_width", "there is no beam search", 1);
  fields.ignore({"stream_interval"});
}

int output_limit(std::optional<int> wanted, int usual, std::size_t prompt_tokens,
                 const ServerContext& context) {
  if (wanted) return *wanted;
  const std::int64_t room = context.longest - static_cast<std::int64_t>(prompt_tokens);
  // Of a prompt without room validate() says so.
  return static_cast<int>(std::clamp<std::int64_t>(room, 1, usual));
}

std::vector<GenerationRequest> repeated(const std::vector<GenerationRequest>& requests, int n,
                                        const ServerContext& context) {
  const std::size_t count = requests.size() * static_cast<std::size_t>(n);
  const auto most = static_cast<std::size_t>(context.options.limits.sequences);
  if (count > most) {
    throw wrong_parameter("n", fmt::format("at most {} sequences in a request", most),
                          std::to_string(count));
  }
  std::vector<GenerationRequest> all;
  all.reserve(count);
  for (const GenerationRequest& request : requests) {
    for (int i = 0; i < n; ++i) {
      all.push_back(request);
      all.back().sampling.seed += static_cast<std::uint64_t>(i);
    }
  }
  return all;
}

void read_model(Fields& fields, const ServerContext& context) {
  const auto model = fields.text("model");
  const auto& names = context.options.names;
  if (!model || *model == "default" || *model == context.options.model.string()) return;
  if (std::find(names.begin(), names.end(), *model) == names.end()) {
    throw HttpError(
        404, fmt::format("model: expected \"{}\", found {}", names.front(), shown(json(*model))),
        "model");
  }
}

std::vector<std::int32_t> encode_prompt(std::string_view text, const ServerContext& context) {
  std::vector<std::int32_t> ids = context.engine.tokenizer().encode(text);
  const std::int32_t bos = context.engine.config().bos_token_id;
  if (context.options.add_bos && (ids.empty() || ids.front() != bos)) {
    ids.insert(ids.begin(), bos);
  }
  return ids;
}

void validate_all(const std::vector<GenerationRequest>& requests, const ServerContext& context) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    context.engine.validate(
        requests[i], requests.size() == 1 ? "request" : fmt::format("request, prompt {}", i));
  }
}

}  // namespace cupel
