#include "cupel/server/native_generate.h"

#include <set>

#include "cupel/server/native_request.h"
#include "cupel/server/reply.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/server/token_text.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using nlohmann::json;

// Log probabilities as [value, id, text or null].
class LogprobTuples {
 public:
  LogprobTuples(const Tokenizer& tokenizer, const NativeRequest& request)
      : tokenizer_(tokenizer), text_(request.logprob_text) {}

  json tuple(const json& value, std::int32_t id) const {
    return json::array({value, id, text_ ? json(token_label(tokenizer_, id)) : json(nullptr)});
  }
  json top(const TokenLogprobs& token, int wanted) const {
    json all = json::array();
    for (std::size_t i = 0; i < token.top.size() && i < static_cast<std::size_t>(wanted); ++i) {
      all.push_back(tuple(token.top[i].second, token.top[i].first));
    }
    return all;
  }

 private:
  const Tokenizer& tokenizer_;
  bool text_;
};

json finish_reason(const Generation& generation) {
  if (generation.finish == FinishReason::kLength) {
    return {{"type", "length"}, {"length", generation.output_ids.size()}};
  }
  return {{"type", "stop"}, {"matched", matched_stop(generation)}};
}

// The answer of one sequence so far.
class NativeAnswer {
 public:
  NativeAnswer(const ServerContext& context, const NativeRequest& request, std::size_t index)
      : tuples_(context.engine.tokenizer(), request),
        item_(request.item(index)),
        logprobs_(item_.request.top_logprobs >= 0) {}

  void add(const JobEvent& event) {
    ids_.push_back(event.id);
    text_ += stream_.feed(event.text);
    if (event.logprobs) add(*event.logprobs);
  }

  // Of the whole sequence, whatever was added before.
  json whole(const Generation& generation) {
    text_ = to_valid_utf8(generation.text);
    ids_ = generation.output_ids;
    outputs_ = tops_ = json::array();
    for (const TokenLogprobs& token : generation.logprobs) add(token);
    json answer = part(finish_reason(generation));
    json& meta = answer["meta_info"];
    meta["cached_tokens"] = generation.cached_prompt_tokens;
    meta["total_retractions"] = generation.preemptions;
    meta["e2e_latency"] = generation.total_seconds;
    if (logprobs_) add_prompt(generation, meta);
    return answer;
  }

  std::size_t tokens() const { return ids_.size(); }

  json part(const json& finish) const {
    json meta = {{"id", item_.id},
                 {"finish_reason", finish},
                 {"prompt_tokens", item_.request.prompt_ids.size()},
                 {"weight_version", "default"},
                 {"completion_tokens", ids_.size()}};
    if (logprobs_) {
      meta["output_token_logprobs"] = outputs_;
      if (item_.top_logprobs > 0) meta["output_top_logprobs"] = tops_;
    }
    return {{"text", text_}, {"output_ids", ids_}, {"meta_info", std::move(meta)}};
  }

 private:
  void add(const TokenLogprobs& token) {
    outputs_.push_back(tuples_.tuple(token.logprob, token.id));
    if (item_.top_logprobs > 0) tops_.push_back(tuples_.top(token, item_.top_logprobs));
  }

  // The first token told of has none, wherever it stands, as in SGLang.
  void add_prompt(const Generation& generation, json& meta) const {
    json inputs = json::array(), tops = json::array();
    const std::vector<std::int32_t>& prompt = item_.request.prompt_ids;
    if (item_.logprob_start >= 0) {
      const auto start = static_cast<std::size_t>(item_.logprob_start);
      inputs.push_back(tuples_.tuple(nullptr, prompt[start]));
      tops.push_back(nullptr);
      for (std::size_t i = start; i < generation.prompt_logprobs.size(); ++i) {
        const TokenLogprobs& token = generation.prompt_logprobs[i];
        inputs.push_back(tuples_.tuple(token.logprob, token.id));
        tops.push_back(tuples_.top(token, item_.top_logprobs));
      }
    }
    meta["input_token_logprobs"] = std::move(inputs);
    if (item_.top_logprobs > 0) meta["input_top_logprobs"] = std::move(tops);
  }

  LogprobTuples tuples_;
  const NativeRequest::Item& item_;
  bool logprobs_;
  Utf8Stream stream_;
  std::string text_;
  std::vector<std::int32_t> ids_;
  json outputs_ = json::array(), tops_ = json::array();
};

class NativeStream final : public StreamWriter {
 public:
  NativeStream(const ServerContext& context, NativeRequest request)
      : request_(std::make_unique<NativeRequest>(std::move(request))) {
    const std::size_t count = request_->items.size() * static_cast<std::size_t>(request_->n);
    for (std::size_t i = 0; i < count; ++i) answers_.emplace_back(context, *request_, i);
  }

  void write(const JobEvent& event, std::string& out) override {
    NativeAnswer& answer = answers_[event.index];
    if (event.done) {
      waiting_.erase(event.index);
      return put(answer.whole(*event.done), event.index, out);
    }
    answer.add(event);
    // Clients take the time of the first token from an event that holds no other.
    if (answer.tokens() == 1) return put(answer.part(nullptr), event.index, out);
    waiting_.insert(event.index);
  }
  // An event holds what all before it held: a client that reads slowly gets fewer of them.
  void flush(std::string& out) override {
    for (const std::size_t index : waiting_) put(answers_[index].part(nullptr), index, out);
    waiting_.clear();
  }
  void end(std::string& out) override { out += sse("[DONE]"); }

 private:
  void put(json part, std::size_t index, std::string& out) const {
    if (request_->list) part["index"] = index;
    out += sse(dump(part));
  }

  std::unique_ptr<NativeRequest> request_;  // the answers refer to it
  std::vector<NativeAnswer> answers_;
  std::set<std::size_t> waiting_;  // sequences with tokens that did not go out
};

}  // namespace

void handle_generate(const ServerContext& context, Exchange& exchange) {
  NativeRequest request = read_generate(exchange.body(), context);
  std::vector<GenerationRequest> prompts;
  prompts.reserve(request.items.size());
  for (const NativeRequest::Item& item : request.items) prompts.push_back(item.request);
  auto sequences = repeated(prompts, request.n, context);
  if (request.stream) {
    stream_all(context, exchange, std::move(sequences),
               std::make_unique<NativeStream>(context, std::move(request)));
    return;
  }
  const Results results = generate_all(context, exchange, std::move(sequences));
  json all = json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    all.push_back(NativeAnswer(context, request, i).whole(*results[i]));
  }
  exchange.reply(200, dump(request.list ? all : all.front()));
}

}  // namespace cupel
