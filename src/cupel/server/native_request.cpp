#include "cupel/server/native_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "cupel/server/fields.h"
#include "cupel/server/http_error.h"
#include "cupel/server/output_form.h"
#include "cupel/server/reply.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/text/chat/openai_messages.h"

namespace cupel {
namespace {

using nlohmann::json;

constexpr int kUsualTokens = 128;  // SGLang's

// A value for all prompts, or a list of one for each.
const json* value_of(const json* given, std::size_t index, std::size_t count,
                     const std::string& name) {
  if (given == nullptr || !given->is_array()) return given;
  if (given->size() != count) {
    throw wrong_parameter(name, fmt::format("one value, or {} of them", count), shown(*given));
  }
  const json& value = (*given)[index];
  return value.is_null() ? nullptr : &value;
}

class GenerateReader {
 public:
  GenerateReader(const json& body, const ServerContext& context)
      : fields_(body), context_(context) {}

  NativeRequest read() {
    read_prompts();
    request_.stream = fields_.boolean("stream").value_or(false);
    request_.logprob_text = fields_.boolean("return_text_in_logprobs").value_or(false);
    const json* sampling = fields_.find("sampling_params");
    const json* logprob = fields_.find("return_logprob");
    const json* start = fields_.find("logprob_start_len");
    const json* top = fields_.find("top_logprobs_num");
    const json* rid = fields_.find("rid");
    refuse_others();
    const std::size_t count = request_.items.size();
    for (std::size_t i = 0; i < count; ++i) {
      // As members of an object, so that they are read and refused in the same way.
      json single = json::object();
      const auto put = [&](const char* key, const json* given) {
        if (const json* value = value_of(given, i, count, key)) single[key] = *value;
      };
      put("return_logprob", logprob);
      put("logprob_start_len", start);
      put("top_logprobs_num", top);
      put("rid", rid);
      NativeRequest::Item& item = request_.items[i];
      read_sampling(value_of(sampling, i, count, "sampling_params"), i, item);
      read_logprobs(single, item);
    }
    request_.list = request_.list || request_.n > 1;
    return std::move(request_);
  }

 private:
  void read_prompts() {
    const json* text = fields_.find("text");
    const json* ids = fields_.find("input_ids");
    if ((text == nullptr) == (ids == nullptr)) {
      throw wrong_parameter("text", "either text or input_ids", text == nullptr ? "none" : "both");
    }
    if (text != nullptr) {
      request_.list = text->is_array();
      const std::vector<std::string> texts = fields_.texts("text");
      for (const std::string& prompt : texts) add(encode_prompt(prompt, context_));
    } else {
      request_.list = ids->is_array() && !ids->empty() && ids->front().is_array();
      if (!request_.list) {
        add(read_token_ids(*ids, "input_ids"));
      } else {
        for (std::size_t i = 0; i < ids->size(); ++i) {
          add(read_token_ids((*ids)[i], fmt::format("input_ids[{}]", i)));
        }
      }
    }
    if (request_.items.empty()) throw wrong_parameter("text", "a prompt", "an empty list");
  }

  void add(std::vector<std::int32_t> ids) {
    if (ids.empty()) throw wrong_parameter("text", "prompts of at least one token", "none");
    request_.items.emplace_back().request.prompt_ids = std::move(ids);
  }

  void read_sampling(const json* params, std::size_t index, NativeRequest::Item& item) {
    static const json kNone = json::object();
    Fields sampling(params == nullptr ? kNone : *params, "sampling_params");
    read_sglang_sampling(sampling, context_, item.request);
    item.request.max_new_tokens = output_limit(sampling.count("max_new_tokens", 1), kUsualTokens,
                                               item.request.prompt_ids.size(), context_);
    const int n = sampling.count("n", 1).value_or(1);
    if (index > 0 && n != request_.n) {
      throw wrong_parameter("sampling_params.n", "the same n for all prompts", std::to_string(n));
    }
    request_.n = n;
    if (const auto schema = sampling.text("json_schema")) {
      item.request.constraint =
          context_.forms.schema(parse_chat_json(*schema, "sampling_params.json_schema",
                                                context_.options.limits.json_depth),
                                "sampling_params.json_schema");
    }
    sampling.refuse("regex", "there are no constraints by regular expressions");
    sampling.refuse("ebnf", "there are no constraints by grammars");
    sampling.refuse("structural_tag", "there are no structural tags");
    sampling.end(context_.options.allow_unknown);
  }

  void read_logprobs(const json& single, NativeRequest::Item& item) {
    Fields fields(single);
    const bool wanted = fields.boolean("return_logprob").value_or(false);
    const int start = fields.count("logprob_start_len", -1).value_or(-1);
    item.top_logprobs =
        fields.count("top_logprobs_num", 0, context_.options.limits.top_logprobs).value_or(0);
    item.id = fields.text("rid").value_or(new_reply_id("gen"));
    if (!wanted) return;
    const auto length = static_cast<int>(item.request.prompt_ids.size());
    if (start >= length) {
      throw wrong_parameter("logprob_start_len", fmt::format("less than {}, the prompt", length),
                            std::to_string(start));
    }
    item.request.top_logprobs = item.top_logprobs;
    item.logprob_start = start;
    // The first token told of has no log probability.
    item.request.prompt_logprobs = start >= 0 && start + 1 < length;
  }

  void refuse_others() {
    const char* const parts[] = {"image_data", "audio_data", "video_data", "input_embeds"};
    for (const char* key : parts) fields_.refuse(key, "prompts are text or token ids");
    fields_.refuse("token_ids_logprob", "use top_logprobs_num");
    fields_.refuse("lora_path", "there are no adapters");
    fields_.refuse("return_hidden_states", "not available");
    fields_.refuse("custom_logit_processor", "there are none");
    fields_.refuse("session_params", "there are no sessions");
    fields_.ignore({"model", "log_metrics", "priority", "bootstrap_host", "bootstrap_port",
                    "bootstrap_room", "routing_key", "extra_key"});
    fields_.end(context_.options.allow_unknown);
  }

  Fields fields_;
  const ServerContext& context_;
  NativeRequest request_;
};

}  // namespace

NativeRequest read_generate(std::string_view body, const ServerContext& context) {
  const json parsed = parse_body(body, context.options.limits.json_depth);
  NativeRequest request = GenerateReader(parsed, context).read();
  std::vector<GenerationRequest> prompts;
  prompts.reserve(request.items.size());
  for (const NativeRequest::Item& item : request.items) prompts.push_back(item.request);
  validate_all(prompts, context);
  return request;
}

}  // namespace cupel
