// Expert routing and the top-k rule (spec section 3.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cupel/base/thread_pool.h"

namespace cupel {

// The k largest scores, ties to the lowest index, as ascending indices. k <= scores.size(). NaN
// counts as smaller than everything.
void select_topk(std::span<const float> scores, std::size_t k, std::int32_t* chosen);

// sqrt(softplus(logit)); log1p(exp(x)), so that it does not underflow for x <= -16.6.
float router_score(float logit);

struct RouteParams {
  const float* logits = nullptr;  // [rows, experts]
  std::size_t rows = 0;
  std::size_t experts = 0;
  const float* bias = nullptr;  // [experts], added for the choice only; may be null
  // Hash layers: the choice is by token id; else null.
  const std::int32_t* by_id = nullptr;  // [vocab, k]
  const std::int32_t* ids = nullptr;    // [rows]
  std::size_t k = 0;
  float scaling = 1;               // routed_scaling_factor
  std::int32_t* chosen = nullptr;  // out [rows, k], ascending within a row
  float* weights = nullptr;        // out [rows, k], of the same experts; sum = scaling
};
void route(ThreadPool& pool, const RouteParams& params);

}  // namespace cupel
