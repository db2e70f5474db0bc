// From logits to a token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cupel/engine/request.h"

namespace cupel {

struct SampledToken {
  std::int32_t id = 0;
  // Difference of the two largest logits after penalties and bias, of tokens that may come;
  // infinite if only one may.
  float margin = 0;
};

// The tokens of a request so far, for penalties.
struct TokenHistory {
  std::map<std::int32_t, int> prompt, output;  // occurrences
};

// What else a request says of its next token; null and empty: nothing.
struct SampleRules {
  const TokenHistory* history = nullptr;                // for penalties
  const std::map<std::int32_t, float>* bias = nullptr;  // by token id, added to its logit
  std::span<const std::int32_t> banned = {};            // cannot come
  // If not empty, others cannot come: bit id % 64 of word id / 64. At least one token of it exists.
  std::span<const std::uint64_t> allowed = {};
};

// A number in [0, 1) that depends on seed and step alone decides a draw; the weights of the tokens
// left are summed in ascending id.
class Sampler {
 public:
  // exists[id]: false for rows of the vocabulary without a token, which are never sampled. At
  // least two must exist.
  explicit Sampler(std::vector<bool> exists) : exists_(std::move(exists)) {}

  // logits [vocab]; `step` counts the output tokens. Throws InfrastructureError if a logit of an
  // existing token is NaN, allowed or not.
  SampledToken sample(std::span<const float> logits, const SamplingParams& params,
                      std::uint64_t step, const SampleRules& rules = {}) const;

  // Of token `id` and the `top` best.
  TokenLogprobs logprobs(std::span<const float> logits, std::int32_t id, int top) const;

 private:
  // Calls f(id) for the tokens that exist and that `rules` allow, in ascending id.
  template <typename F>
  void visit(std::size_t vocab, const SampleRules& rules, const F& f) const;

  std::vector<bool> exists_;
};

// A uniform number in [0, 1), a function of its arguments alone.
double uniform(std::uint64_t seed, std::uint64_t step);

}  // namespace cupel
