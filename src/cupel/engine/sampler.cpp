#include "cupel/engine/sampler.h"

#include <cmath>
#include <limits>

#include "cupel/base/error.h"

namespace cupel {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a bijective mixer.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double uniform(std::uint64_t seed, std::uint64_t step) {
  return static_cast<double>(mix(mix(seed) ^ step) >> 11) * 0x1p-53;
}

SampledToken Sampler::sample(std::span<const float> logits, float temperature, std::uint64_t seed,
                             std::uint64_t step) const {
  float best = -std::numeric_limits<float>::infinity(), second = best;
  std::size_t best_id = 0;
  bool found = false;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!allowed_[id]) continue;
    const float x = logits[id];
    if (std::isnan(x)) {
      throw InfrastructureError("logits", "token " + std::to_string(id) + " is NaN");
    }
    if (!found || x > best) {
      if (found) second = best;
      best = x;
      best_id = id;
      found = true;
    } else if (x > second) {
      second = x;
    }
  }
  SampledToken token{.id = static_cast<std::int32_t>(best_id), .margin = best - second};
  if (temperature <= 0) return token;

  const auto weight = [&](std::size_t id) {
    return std::exp((static_cast<double>(logits[id]) - best) / temperature);
  };
  double total = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (allowed_[id]) total += weight(id);
  }
  double left = uniform(seed, step) * total;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!allowed_[id]) continue;
    left -= weight(id);
    if (left < 0) {
      token.id = static_cast<std::int32_t>(id);
      break;
    }
  }
  return token;
}

}  // namespace cupel
