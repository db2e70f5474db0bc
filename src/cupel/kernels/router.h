// Expert routing and the top-k rule (spec section 3.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cupel {

// The k largest scores, ties to the lowest index, as ascending indices. k <= scores.size(). NaN
// counts as smaller than everything.
void select_topk(std::span<const float> scores, std::size_t k, std::int32_t* chosen);

// sqrt(softplus(logit)); log1p(exp(x)), so that it does not underflow for x <= -16.6.
float router_score(float logit);

struct RouteParams {
  std::span<const float> logits;        // [experts] of one token
  const float* bias = nullptr;          // [experts], added for the choice only; may be null
  const std::int32_t* fixed = nullptr;  // [k] chosen by token id (hash layers), or null
  std::size_t k = 0;
  float scaling = 1;                // routed_scaling_factor
  std::int32_t* experts = nullptr;  // out [k], ascending
  float* weights = nullptr;         // out [k], of the same experts; sum = scaling
};
void route(const RouteParams& params);

}  // namespace cupel
