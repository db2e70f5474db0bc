#include "cupel/kernels/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cupel/kernels/rows.h"

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

namespace {

void route_row(const RouteParams& p, std::size_t row) {
  const float* logits = p.logits + row * p.experts;
  std::int32_t* chosen = p.chosen + row * p.k;
  float* weights = p.weights + row * p.k;
  std::vector<float> scores(p.experts);
  for (std::size_t e = 0; e < scores.size(); ++e) scores[e] = router_score(logits[e]);
  if (p.by_id != nullptr) {
    std::copy_n(p.by_id + static_cast<std::size_t>(p.ids[row]) * p.k, p.k, chosen);
    std::sort(chosen, chosen + p.k);
  } else {
    std::vector<float> biased = scores;
    if (p.bias != nullptr) {
      for (std::size_t e = 0; e < biased.size(); ++e) biased[e] += p.bias[e];
    }
    select_topk(biased, p.k, chosen);
  }
  float sum = 0;
  for (std::size_t i = 0; i < p.k; ++i) {
    weights[i] = scores[static_cast<std::size_t>(chosen[i])];
    sum += weights[i];
  }
  for (std::size_t i = 0; i < p.k; ++i) weights[i] = weights[i] / sum * p.scaling;
}

}  // namespace

void route(ThreadPool& pool, const RouteParams& p) {
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) route_row(p, r);
  });
}

}  // namespace cupel
