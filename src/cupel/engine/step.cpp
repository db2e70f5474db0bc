// One step of the engine: compute what the scheduler planned, take the tokens, make the calls.
#include <algorithm>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/engine/engine.h"

namespace cupel {
namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

// The calls a token leads to; they are made when the bookkeeping of the whole step is done.
struct Engine::Delivery {
  Sequence* sequence = nullptr;
  bool token = false;  // false: the request ended in an error instead
  std::string_view text = {};
  bool ended = false;
};

bool Engine::step() {
  const StepPlan plan = scheduler_->plan();
  if (plan.segments.empty()) return false;
  std::vector<SegmentInput> inputs;
  std::vector<std::size_t> logits_rows;
  std::size_t row = 0;
  for (const StepSegment& segment : plan.segments) {
    Sequence& s = *segment.sequence;
    if (s.result.queue_seconds < 0) s.result.queue_seconds = seconds_since(s.submitted);
    inputs.push_back(
        {.state = &s.state, .ids = std::span(s.tokens).subspan(s.computed(), segment.count)});
    if (segment.every_row) {
      for (std::size_t i = 0; i < segment.count; ++i) logits_rows.push_back(row + i);
    } else if (segment.samples) {
      logits_rows.push_back(row + segment.count - 1);
    }
    row += segment.count;
  }
  std::vector<FaultOrigin> origins;
  const std::vector<float> logits = network_->forward(inputs, logits_rows, nullptr, &origins);
  ++steps_;
  scheduler_->advance(plan);

  const auto vocab = static_cast<std::size_t>(config().vocab_size);
  std::vector<Delivery> deliveries;
  std::size_t given = 0;  // rows of logits
  for (const StepSegment& segment : plan.segments) {
    Sequence& s = *segment.sequence;
    const std::size_t rows = segment.every_row ? segment.count : (segment.samples ? 1 : 0);
    const auto own = std::span(logits).subspan(given * vocab, rows * vocab);
    given += rows;
    if (segment.every_row) accept_prompt(s, s.computed() - segment.count, own);
    if (segment.samples) deliveries.push_back(accept(s, own.last(vocab), origins[given - 1]));
  }
  // The ended ones are out of the scheduler before the first call, which may throw.
  std::vector<std::unique_ptr<Sequence>> ended;
  for (const Delivery& d : deliveries) {
    if (d.ended) {
      const bool keep = d.sequence->result.finish != FinishReason::kError;
      ended.push_back(scheduler_->remove(d.sequence->id, keep));
    }
  }
  for (const Delivery& d : deliveries) {
    const Sequence& s = *d.sequence;
    if (d.token && s.callbacks.on_token) {
      s.callbacks.on_token(
          {.id = s.result.output_ids.back(),
           .text = d.text,
           .logprobs = s.result.logprobs.empty() ? nullptr : &s.result.logprobs.back()});
    }
    if (d.ended && s.callbacks.on_done) s.callbacks.on_done(s.result);
  }
  return true;
}

bool Engine::ends_at(const Sequence& s, std::int32_t id) const {
  if (id == config().eos_token_id && !s.request.ignore_eos) return true;
  return std::find(s.request.stop_ids.begin(), s.request.stop_ids.end(), id) !=
         s.request.stop_ids.end();
}

std::vector<std::uint64_t> Engine::allowed_tokens(Sequence& s) const {
  // The last token is kept for the end.
  const std::size_t room =
      static_cast<std::size_t>(s.request.max_new_tokens) - s.result.output_ids.size() - 1;
  const std::span<const std::uint64_t> form = s.constraint->allowed(room);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(config().vocab_size + 63) / 64);
  std::copy_n(form.begin(), std::min(form.size(), words.size()), words.begin());
  const bool may_end = s.constraint->can_end();
  const auto set_end = [&](std::int32_t id) {
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    std::uint64_t& word = words[static_cast<std::size_t>(id) / 64];
    word = may_end ? word | bit : word & ~bit;
  };
  set_end(config().eos_token_id);
  for (const std::int32_t id : s.request.stop_ids) set_end(id);
  return words;
}

Engine::Delivery Engine::accept(Sequence& s, std::span<const float> logits,
                                const FaultOrigin& origin) {
  Generation& g = s.result;
  const GenerationRequest& request = s.request;
  const std::size_t produced = g.output_ids.size();
  Delivery delivery{.sequence = &s};
  const auto end = [&](FinishReason reason) {
    g.finish = reason;
    g.total_seconds = seconds_since(s.submitted);
    delivery.ended = true;
  };

  std::vector<std::int32_t> banned;
  if (produced < static_cast<std::size_t>(request.min_new_tokens)) {
    banned = request.stop_ids;
    if (!request.ignore_eos) banned.push_back(config().eos_token_id);
  }
  std::vector<std::uint64_t> allowed;
  if (s.constraint) allowed = allowed_tokens(s);
  if (s.callbacks.on_logits) s.callbacks.on_logits(logits);
  SampledToken token;
  try {
    token = sampler_.sample(
        logits, request.sampling, produced,
        {.history = &s.history, .bias = &request.logit_bias, .banned = banned, .allowed = allowed});
  } catch (const Error& error) {
    // This request is lost; the others go on.
    g.error = fmt::format("{}, first not finite after {}", error.what(), describe(origin));
    end(FinishReason::kError);
    return delivery;
  }

  delivery.token = true;
  ++output_tokens_;
  if (produced == 0) g.first_token_seconds = seconds_since(s.submitted);
  if (token.margin < g.min_margin) {
    g.min_margin = token.margin;
    g.min_margin_step = static_cast<int>(produced);
  }
  g.margins.push_back(token.margin);
  g.output_ids.push_back(token.id);
  s.tokens.push_back(token.id);
  if (request.sampling.penalises()) ++s.history.output[token.id];
  if (request.top_logprobs >= 0) {
    g.logprobs.push_back(sampler_.logprobs(logits, token.id, request.top_logprobs));
  }

  if (ends_at(s, token.id)) {
    end(FinishReason::kEos);
  } else {
    if (s.constraint) s.constraint->advance(token.id);
    const std::string_view bytes = tokenizer_.token_bytes(token.id);
    g.text += bytes;
    if (const auto match = s.stops.feed(bytes)) {
      g.text.resize(match->text_length);
      g.stop = request.stop[match->stop];
      end(FinishReason::kStopString);
    } else if (g.output_ids.size() == static_cast<std::size_t>(request.max_new_tokens)) {
      end(FinishReason::kLength);
    }
  }
  // What a stop string may still take back is held, except at the end.
  const std::size_t certain = delivery.ended ? g.text.size() : s.stops.safe_length();
  delivery.text = std::string_view(g.text).substr(s.told, certain - s.told);
  s.told = certain;
  return delivery;
}

void Engine::accept_prompt(Sequence& s, std::size_t first, std::span<const float> logits) const {
  const auto vocab = static_cast<std::size_t>(config().vocab_size);
  const std::vector<std::int32_t>& prompt = s.request.prompt_ids;
  s.result.prompt_logprobs.resize(prompt.size() - 1);
  for (std::size_t i = 0; i < logits.size() / vocab && first + i + 1 < prompt.size(); ++i) {
    s.result.prompt_logprobs[first + i] =
        sampler_.logprobs(logits.subspan(i * vocab, vocab), prompt[first + i + 1],
                          std::max(s.request.top_logprobs, 0));
  }
}

}  // namespace cupel
