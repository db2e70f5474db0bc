// From logits to a token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cupel {

struct SampledToken {
  std::int32_t id = 0;
  float margin = 0;  // difference of the two largest logits among tokens that exist
};

// Temperature 0 takes the largest logit, ties to the lowest id; else draws from
// softmax(logits / temperature) with a number that depends on seed and step alone.
class Sampler {
 public:
  // allowed[id]: false for rows of the vocabulary without a token, which are never sampled. At
  // least two must be allowed.
  explicit Sampler(std::vector<bool> allowed) : allowed_(std::move(allowed)) {}

  // Throws InfrastructureError if a logit of an existing token is NaN.
  SampledToken sample(std::span<const float> logits, float temperature, std::uint64_t seed,
                      std::uint64_t step) const;

 private:
  std::vector<bool> allowed_;
};

// A uniform number in [0, 1), a function of its arguments alone.
double uniform(std::uint64_t seed, std::uint64_t step);

}  // namespace cupel
