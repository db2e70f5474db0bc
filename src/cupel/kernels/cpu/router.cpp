#include "cupel/kernels/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace cupel {

void select_topk(std::span<const float> scores, std::size_t k, std::int32_t* chosen) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int32_t i) { return scores[static_cast<std::size_t>(i)]; };
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(order.begin(), middle, order.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = value(a), y = value(b);
    if (x > y || x < y) return x > y;
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return a < b;
  });
  std::sort(order.begin(), middle);
  std::copy(order.begin(), middle, chosen);
}

float router_score(float logit) {
  // In double: exact to the last fp32 bit or nearly, whatever the C library does with floats.
  const double x = logit;
  return static_cast<float>(std::sqrt(static_cast<float>(x > 20 ? x : std::log1p(std::exp(x)))));
}

void route(const RouteParams& p) {
  std::vector<float> scores(p.logits.size());
  for (std::size_t e = 0; e < scores.size(); ++e) scores[e] = router_score(p.logits[e]);
  if (p.fixed != nullptr) {
    std::copy_n(p.fixed, p.k, p.experts);
    std::sort(p.experts, p.experts + p.k);
  } else {
    std::vector<float> biased = scores;
    if (p.bias != nullptr) {
      for (std::size_t e = 0; e < biased.size(); ++e) biased[e] += p.bias[e];
    }
    select_topk(biased, p.k, p.experts);
  }
  float sum = 0;
  for (std::size_t i = 0; i < p.k; ++i) {
    p.weights[i] = scores[static_cast<std::size_t>(p.experts[i])];
    sum += p.weights[i];
  }
  for (std::size_t i = 0; i < p.k; ++i) p.weights[i] = p.weights[i] / sum * p.scaling;
}

}  // namespace cupel
