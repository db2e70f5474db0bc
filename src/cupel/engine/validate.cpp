// What a request must be (Engine::validate).
#include <cmath>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/engine/engine.h"

namespace cupel {
namespace {

class Checker {
 public:
  Checker(std::string_view where, const ModelConfig& config) : where_(where), config_(config) {}

  template <typename T>
  void require(bool holds, std::string_view expected, const T& found) const {
    if (!holds) throw InputError(where_, expected, fmt::format("{}", found));
  }

  // `of` says where the id stands.
  void id(std::int32_t value, const std::string& of) const {
    if (value < 0 || value >= config_.vocab_size) {
      throw InputError(fmt::format("{}, {}", where_, of),
                       fmt::format("an id in [0, {})", config_.vocab_size), std::to_string(value));
    }
  }

  void sampling(const SamplingParams& p) const {
    require(std::isfinite(p.temperature) && p.temperature >= 0,
            "a finite temperature of at least 0", p.temperature);
    require(p.top_k >= 0, "top_k of at least 0", p.top_k);
    require(p.top_p > 0 && p.top_p <= 1, "top_p above 0 and at most 1", p.top_p);
    require(p.min_p >= 0 && p.min_p <= 1, "min_p from 0 to 1", p.min_p);
    require(std::isfinite(p.repetition_penalty) && p.repetition_penalty > 0,
            "a finite repetition_penalty above 0", p.repetition_penalty);
    require(std::isfinite(p.frequency_penalty), "a finite frequency_penalty", p.frequency_penalty);
    require(std::isfinite(p.presence_penalty), "a finite presence_penalty", p.presence_penalty);
  }

  void bias(const std::map<std::int32_t, float>& by_token) const {
    for (const auto& [token, bias] : by_token) {
      id(token, "logit_bias");
      require(std::isfinite(bias), "finite logit_bias", bias);
    }
  }

  // What could end an output before its form is complete, or not at all, is refused.
  void constraint(const GenerationRequest& r) const {
    const std::size_t needed = r.constraint->shortest() + 1;
    require(static_cast<std::size_t>(r.max_new_tokens) >= needed,
            fmt::format("max_new_tokens of at least {} (the shortest output of the constraint and "
                        "the token that ends it)",
                        needed),
            r.max_new_tokens);
    require(!r.ignore_eos, "no ignore_eos with a constraint", r.ignore_eos);
    require(r.min_new_tokens == 0, "no min_new_tokens with a constraint", r.min_new_tokens);
    require(r.stop.empty(), "no stop strings with a constraint",
            r.stop.empty() ? std::string() : r.stop.front());
    require(!r.constraint->uses(config_.eos_token_id),
            "a constraint whose outputs do not contain EOS", config_.eos_token_id);
    for (const std::int32_t id : r.stop_ids) {
      require(!r.constraint->uses(id), "stop_ids that no output of the constraint contains", id);
    }
  }

 private:
  std::string where_;
  const ModelConfig& config_;
};

}  // namespace

void Engine::validate(const GenerationRequest& request, std::string_view where) const {
  const Checker check(where, config());
  check.require(!request.prompt_ids.empty(), "a prompt of at least one token", "none");
  check.require(request.max_new_tokens >= 1, "max_new_tokens of at least 1",
                request.max_new_tokens);
  check.require(request.min_new_tokens >= 0 && request.min_new_tokens <= request.max_new_tokens,
                "min_new_tokens from 0 to max_new_tokens", request.min_new_tokens);
  check.require(request.top_logprobs >= -1 && request.top_logprobs <= config().vocab_size,
                "top_logprobs from -1 to the size of the vocabulary", request.top_logprobs);
  check.sampling(request.sampling);
  check.bias(request.logit_bias);
  for (const std::string& stop : request.stop) {
    check.require(!stop.empty(), "stop strings of at least one byte", "\"\"");
  }
  for (const std::int32_t id : request.stop_ids) check.id(id, "stop_ids");
  for (std::size_t i = 0; i < request.prompt_ids.size(); ++i) {
    check.id(request.prompt_ids[i], fmt::format("prompt token {}", i));
  }
  if (request.constraint) check.constraint(request);
  const auto prompt = static_cast<std::int64_t>(request.prompt_ids.size());
  const std::int64_t total = prompt + request.max_new_tokens;
  check.require(total <= config().max_position_embeddings,
                fmt::format("prompt and new tokens within the context of {}",
                            config().max_position_embeddings),
                fmt::format("{} + {}", request.prompt_ids.size(), request.max_new_tokens));
  const std::size_t bytes = network_->sequence_bytes(total);
  check.require(bytes <= scheduler_->limits().max_cache_bytes,
                fmt::format("prompt and new tokens within {} bytes of cache",
                            scheduler_->limits().max_cache_bytes),
                fmt::format("{} + {} tokens of {} bytes", request.prompt_ids.size(),
                            request.max_new_tokens, bytes));
}

}  // namespace cupel
