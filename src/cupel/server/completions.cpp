#include "cupel/server/completions.h"

#include <algorithm>

#include "cupel/server/completions_request.h"
#include "cupel/server/openai_reply.h"
#include "cupel/server/sampling_fields.h"
#include "cupel/server/token_text.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using nlohmann::json;

// The four lists of OpenAI's log probabilities.
class LogprobLists {
 public:
  LogprobLists(const Tokenizer& tokenizer, int wanted, std::size_t offset = 0)
      : tokenizer_(tokenizer), wanted_(wanted), offset_(offset) {}

  // A token without any: the first of a prompt.
  void add(std::int32_t id) {
    add_text(id);
    logprobs_.push_back(nullptr);
    top_.push_back(nullptr);
  }
  void add(const TokenLogprobs& token) {
    add_text(token.id);
    logprobs_.push_back(token.logprob);
    // The chosen token is among them, as OpenAI has it.
    json top = {{token_label(tokenizer_, token.id), token.logprob}};
    for (std::size_t i = 0; i < std::min(token.top.size(), static_cast<std::size_t>(wanted_));
         ++i) {
      top[token_label(tokenizer_, token.top[i].first)] = token.top[i].second;
    }
    top_.push_back(std::move(top));
  }

  std::size_t offset() const { return offset_; }
  json take() {
    json lists = {{"tokens", std::move(tokens_)},
                  {"token_logprobs", std::move(logprobs_)},
                  {"top_logprobs", std::move(top_)},
                  {"text_offset", std::move(offsets_)}};
    tokens_ = logprobs_ = top_ = offsets_ = json::array();
    return lists;
  }

 private:
  void add_text(std::int32_t id) {
    tokens_.push_back(token_label(tokenizer_, id));
    offsets_.push_back(offset_);
    // In characters: bytes that continue none.
    const std::string_view bytes = tokenizer_.token_bytes(id);
    offset_ += static_cast<std::size_t>(
        std::count_if(bytes.begin(), bytes.end(), [](char b) { return (b & 0xC0) != 0x80; }));
  }

  const Tokenizer& tokenizer_;
  int wanted_;
  std::size_t offset_;
  json tokens_ = json::array(), logprobs_ = json::array(), top_ = json::array(),
       offsets_ = json::array();
};

json head(const ServerContext& context) {
  return openai_head(context, "cmpl", "text_completion");
}

json whole_choice(const ServerContext& context, const CompletionsRequest& request,
                  std::size_t index, const Generation& generation) {
  const std::size_t prompt = index / static_cast<std::size_t>(request.n);
  const GenerationRequest& asked = request.prompts[prompt];
  std::string text = request.echo ? request.texts[prompt] : std::string();
  if (!request.no_output) text += to_valid_utf8(generation.text);
  json choice = {{"index", index}, {"text", text}, {"logprobs", nullptr}};
  if (request.logprobs >= 0) {
    LogprobLists lists(context.engine.tokenizer(), request.logprobs);
    if (request.echo) {
      lists.add(asked.prompt_ids.front());
      for (const TokenLogprobs& token : generation.prompt_logprobs) lists.add(token);
    }
    if (!request.no_output) {
      for (const TokenLogprobs& token : generation.logprobs) lists.add(token);
    }
    choice["logprobs"] = lists.take();
  }
  if (request.token_ids) choice["token_ids"] = generation.output_ids;
  choice["finish_reason"] = request.no_output ? json("length") : finish_name(generation.finish);
  choice["matched_stop"] = request.no_output ? json(nullptr) : matched_stop(generation);
  return choice;
}

class CompletionsStream final : public OpenAiStream {
 public:
  CompletionsStream(const ServerContext& context, CompletionsRequest request)
      : OpenAiStream(head(context), Usage(request.prompts), request.include_usage),
        request_(std::move(request)),
        choices_(request_.prompts.size() * static_cast<std::size_t>(request_.n)) {
    if (request_.logprobs < 0) return;
    for (Choice& choice : choices_) {
      choice.logprobs.emplace_back(context.engine.tokenizer(), request_.logprobs);
    }
  }

  void write(const JobEvent& event, std::string& out) override {
    Choice& state = choices_[event.index];
    json choice = {{"index", event.index}, {"logprobs", nullptr}};
    std::string text;
    if (request_.echo && !state.begun) {
      text = request_.texts[event.index / static_cast<std::size_t>(request_.n)];
    }
    state.begun = true;
    if (event.done) {
      count(*event.done);
      choice["finish_reason"] =
          request_.no_output ? json("length") : finish_name(event.done->finish);
      choice["matched_stop"] = request_.no_output ? json(nullptr) : matched_stop(*event.done);
      if (!request_.no_output) text += state.text.finish();
    } else {
      choice["finish_reason"] = nullptr;
      if (!request_.no_output) text += state.text.feed(event.text);
      if (event.logprobs && !request_.no_output) {
        state.logprobs.front().add(*event.logprobs);
        choice["logprobs"] = state.logprobs.front().take();
      }
      if (request_.token_ids) choice["token_ids"] = json::array({event.id});
      const bool tells = !text.empty() || request_.token_ids || event.logprobs;
      if (!tells) return;
    }
    choice["text"] = text;
    put(std::move(choice), out);
  }

 private:
  struct Choice {
    bool begun = false;
    Utf8Stream text;
    std::vector<LogprobLists> logprobs;  // one if asked for
  };

  CompletionsRequest request_;
  std::vector<Choice> choices_;
};

}  // namespace

void handle_completions(const ServerContext& context, Exchange& exchange) {
  CompletionsRequest request = read_completions(exchange.body(), context);
  auto sequences = repeated(request.prompts, request.n, context);
  if (request.stream) {
    stream_all(context, exchange, std::move(sequences),
               std::make_unique<CompletionsStream>(context, std::move(request)));
    return;
  }
  const Results results = generate_all(context, exchange, std::move(sequences));
  reply_whole(exchange, head(context), Usage(request.prompts), results,
              [&](std::size_t index, const Generation& generation) {
                return whole_choice(context, request, index, generation);
              });
}

}  // namespace cupel
