#include "cupel/engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// SplitMix64 (Steele, Lea, Flood 2014): a bijective mixer.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct Candidate {
  std::int32_t id;
  double weight;  // exp((logit - largest) / temperature)
};

// Best first; ties to the lowest id.
bool better(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

double total(std::span<const Candidate> candidates) {
  double sum = 0;
  for (const Candidate& c : candidates) sum += c.weight;
  return sum;
}

// Leaves what top_k, top_p and min_p allow, in ascending id.
void truncate(std::vector<Candidate>& candidates, const SamplingParams& p) {
  if (p.top_k <= 0 && p.top_p >= 1 && p.min_p <= 0) return;
  std::sort(candidates.begin(), candidates.end(), better);
  if (p.top_k > 0) {
    candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(p.top_k)));
  }
  if (p.top_p < 1) {
    const double wanted = p.top_p * total(candidates);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < candidates.size() && (kept == 0 || sum < wanted))
      sum += candidates[kept++].weight;
    candidates.resize(kept);
  }
  if (p.min_p > 0) {
    const double least = p.min_p * candidates.front().weight;
    std::erase_if(candidates, [&](const Candidate& c) { return c.weight < least; });
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

std::int32_t draw(std::vector<Candidate>& candidates, const SamplingParams& p, std::uint64_t step) {
  truncate(candidates, p);
  double left = uniform(p.seed, step) * total(candidates);
  for (const Candidate& c : candidates) {
    left -= c.weight;
    if (left < 0) return c.id;
  }
  // Rounding may leave a trifle: the last token that can come at all.
  const auto last = std::find_if(candidates.rbegin(), candidates.rend(),
                                 [](const Candidate& c) { return c.weight > 0; });
  return last->id;
}

void penalise(std::vector<float>& logits, const SamplingParams& p, const TokenHistory& history) {
  const auto at = [&](std::int32_t id) -> float& { return logits[static_cast<std::size_t>(id)]; };
  if (p.repetition_penalty != 1) {
    const auto repeat = [&](std::int32_t id) {
      at(id) = at(id) > 0 ? at(id) / p.repetition_penalty : at(id) * p.repetition_penalty;
    };
    for (const auto& [id, count] : history.prompt) repeat(id);
    for (const auto& [id, count] : history.output) {
      if (!history.prompt.contains(id)) repeat(id);
    }
  }
  for (const auto& [id, count] : history.output) {
    at(id) -= p.frequency_penalty * static_cast<float>(count) + p.presence_penalty;
  }
}

}  // namespace

double uniform(std::uint64_t seed, std::uint64_t step) {
  return static_cast<double>(mix(mix(seed) ^ step) >> 11) * 0x1p-53;
}

template <typename F>
void Sampler::visit(std::size_t vocab, const SampleRules& rules, const F& f) const {
  if (rules.allowed.empty()) {
    for (std::size_t id = 0; id < vocab; ++id) {
      if (exists_[id]) f(id);
    }
    return;
  }
  for (std::size_t word = 0; word < rules.allowed.size(); ++word) {
    for (std::uint64_t bits = rules.allowed[word]; bits != 0; bits &= bits - 1) {
      const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (id < vocab && exists_[id]) f(id);
    }
  }
}

SampledToken Sampler::sample(std::span<const float> raw, const SamplingParams& params,
                             std::uint64_t step, const SampleRules& rules) const {
  for (std::size_t id = 0; id < raw.size(); ++id) {
    if (exists_[id] && std::isnan(raw[id])) {
      throw InfrastructureError("logits", "token " + std::to_string(id) + " is NaN");
    }
  }
  std::vector<float> adjusted;
  std::span<const float> logits = raw;
  const bool penalises = params.penalises() && rules.history != nullptr;
  const bool biased = rules.bias != nullptr && !rules.bias->empty();
  if (penalises || biased || !rules.banned.empty()) {
    adjusted.assign(raw.begin(), raw.end());
    if (penalises) penalise(adjusted, params, *rules.history);
    if (biased) {
      for (const auto& [id, bias] : *rules.bias) adjusted[static_cast<std::size_t>(id)] += bias;
    }
    for (const std::int32_t id : rules.banned) adjusted[static_cast<std::size_t>(id)] = kNever;
    logits = adjusted;
  }

  float best = kNever, second = kNever;
  std::int32_t best_id = -1;
  visit(logits.size(), rules, [&](std::size_t id) {
    const float x = logits[id];
    if (best_id < 0 || x > best) {
      if (best_id >= 0) second = best;
      best = x;
      best_id = static_cast<std::int32_t>(id);
    } else if (x > second) {
      second = x;
    }
  });
  if (best_id < 0) throw InfrastructureError("sampler", "no token is allowed");
  SampledToken token{.id = best_id, .margin = best - second};
  if (params.temperature <= 0) return token;

  std::vector<Candidate> candidates;
  visit(logits.size(), rules, [&](std::size_t id) {
    candidates.push_back({static_cast<std::int32_t>(id),
                          std::exp((static_cast<double>(logits[id]) - best) / params.temperature)});
  });
  token.id = draw(candidates, params, step);
  return token;
}

TokenLogprobs Sampler::logprobs(std::span<const float> logits, std::int32_t id, int top) const {
  std::vector<std::int32_t> order;
  double largest = kNever;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!exists_[i]) continue;
    order.push_back(static_cast<std::int32_t>(i));
    largest = std::max(largest, static_cast<double>(logits[i]));
  }
  double sum = 0;
  for (const std::int32_t i : order) {
    sum += std::exp(static_cast<double>(logits[static_cast<std::size_t>(i)]) - largest);
  }
  const double log_sum = largest + std::log(sum);
  const auto logprob = [&](std::int32_t i) {
    return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(i)]) - log_sum);
  };
  TokenLogprobs result{.id = id, .logprob = logprob(id), .top = {}};
  const auto count = std::min(order.size(), static_cast<std::size_t>(std::max(top, 0)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const float x = logits[static_cast<std::size_t>(a)];
                      const float y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (std::size_t i = 0; i < count; ++i) result.top.emplace_back(order[i], logprob(order[i]));
  return result;
}

}  // namespace cupel
