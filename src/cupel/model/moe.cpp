#include "cupel/model/moe.h"

#include <algorithm>
#include <vector>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/activation.h"
#include "cupel/kernels/linear.h"
#include "cupel/kernels/router.h"
#include "cupel/kernels/rows.h"

namespace cupel {
namespace {

// A row of an expert's batch: which token, and with which weight.
struct Assignment {
  std::size_t token;
  float weight;
};

// Where each token's experts ended up: batch rows are ordered by expert, then by token.
struct Routing {
  std::vector<std::vector<Assignment>> by_expert;
  std::vector<std::size_t> first_row;      // of each expert in the batch
  std::vector<std::size_t> rows_of_token;  // [tokens, k] batch rows, ascending expert
};

void tap(const MoeParams& p, std::string_view name, std::span<const float> values,
         std::size_t width) {
  if (p.taps != nullptr && p.taps->values) p.taps->values(name, p.layer, values, width);
}

Routing route_rows(ThreadPool& pool, const MoeParams& p) {
  const auto tokens = p.ids.size();
  const auto k = static_cast<std::size_t>(p.config->experts_per_token);
  const std::size_t experts = p.weights->experts.size();
  const std::size_t hidden = p.weights->gate.k();
  std::vector<float> logits(tokens * experts);
  linear(pool, {.x = p.x,
                .x_stride = hidden,
                .rows = tokens,
                .weight = &p.weights->gate,
                .out = logits.data(),
                .out_stride = experts});
  tap(p, "router_logits", logits, experts);
  std::vector<std::int32_t> chosen(tokens * k);
  std::vector<float> weights(tokens * k);
  parallel_rows(pool, tokens, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      const auto id = static_cast<std::size_t>(p.ids[t]);
      route({.logits = std::span(logits).subspan(t * experts, experts),
             .bias = p.weights->bias.empty() ? nullptr : p.weights->bias.data(),
             .fixed = p.weights->tid2eid.empty() ? nullptr : p.weights->tid2eid.data() + id * k,
             .k = k,
             .scaling = p.config->routed_scaling_factor,
             .experts = chosen.data() + t * k,
             .weights = weights.data() + t * k});
    }
  });

  Routing routing{.by_expert = std::vector<std::vector<Assignment>>(experts),
                  .first_row = std::vector<std::size_t>(experts),
                  .rows_of_token = std::vector<std::size_t>(tokens * k)};
  for (std::size_t i = 0; i < tokens * k; ++i) {
    auto& rows = routing.by_expert[static_cast<std::size_t>(chosen[i])];
    routing.rows_of_token[i] = rows.size();  // made absolute below
    rows.push_back({i / k, weights[i]});
  }
  std::size_t total = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    routing.first_row[e] = total;
    total += routing.by_expert[e].size();
  }
  for (std::size_t i = 0; i < tokens * k; ++i) {
    routing.rows_of_token[i] += routing.first_row[static_cast<std::size_t>(chosen[i])];
  }
  return routing;
}

}  // namespace

void moe(ThreadPool& pool, const MoeParams& p) {
  const bool round = p.numerics == Numerics::kReference;
  const std::size_t tokens = p.ids.size();
  const auto hidden = static_cast<std::size_t>(p.config->hidden_size);
  const auto width = static_cast<std::size_t>(p.config->expert_width);
  const auto k = static_cast<std::size_t>(p.config->experts_per_token);
  const std::size_t routed_rows = tokens * k;
  const std::size_t batch = routed_rows + tokens * p.weights->shared.size();
  tap(p, "ffn_in", {p.x, tokens * hidden}, hidden);
  const Routing routing = route_rows(pool, p);

  std::vector<float> x(p.x, p.x + tokens * hidden);
  if (round) {
    quantise_activation(pool, {.in = p.x, .out = x.data(), .rows = tokens, .width = hidden});
  }

  // The batch: rows of the routed experts one after the other, then those of the shared experts.
  std::vector<float> gathered(routed_rows * hidden);
  std::vector<float> weights(batch, 1.0f);
  pool.parallel_for(routing.by_expert.size(), [&](std::size_t e, int) {
    for (std::size_t i = 0; i < routing.by_expert[e].size(); ++i) {
      const Assignment& a = routing.by_expert[e][i];
      const std::size_t row = routing.first_row[e] + i;
      std::copy_n(x.data() + a.token * hidden, hidden, gathered.data() + row * hidden);
      weights[row] = a.weight;
    }
  });
  struct Batch {
    const ExpertWeights* expert;
    const float* x;
    std::size_t first, rows;
  };
  std::vector<Batch> batches;
  for (std::size_t e = 0; e < routing.by_expert.size(); ++e) {
    batches.push_back({&p.weights->experts[e], gathered.data() + routing.first_row[e] * hidden,
                       routing.first_row[e], routing.by_expert[e].size()});
  }
  for (std::size_t s = 0; s < p.weights->shared.size(); ++s) {
    batches.push_back({&p.weights->shared[s], x.data(), routed_rows + s * tokens, tokens});
  }

  std::vector<float> gate(batch * width), up(batch * width);
  std::vector<LinearParams> products;
  for (const Batch& b : batches) {
    for (const auto& [weight, out] :
         {std::pair(&b.expert->w1, &gate), std::pair(&b.expert->w3, &up)}) {
      products.push_back({.x = b.x,
                          .x_stride = hidden,
                          .rows = b.rows,
                          .weight = weight,
                          .out = out->data() + b.first * width,
                          .out_stride = width,
                          .round_bf16 = round});
    }
  }
  linear(pool, products);
  swiglu(pool, {.gate = gate.data(),
                .up = up.data(),
                .weight = weights.data(),
                .out = gate.data(),
                .rows = batch,
                .width = width,
                .limit = p.config->swiglu_limit,
                .round_bf16 = round});
  tap(p, "expert_hidden", gate, width);
  if (round) {
    quantise_activation(pool,
                        {.in = gate.data(), .out = gate.data(), .rows = batch, .width = width});
  }
  std::vector<float> y(batch * hidden);
  products.clear();
  for (const Batch& b : batches) {
    products.push_back({.x = gate.data() + b.first * width,
                        .x_stride = width,
                        .rows = b.rows,
                        .weight = &b.expert->w2,
                        .out = y.data() + b.first * hidden,
                        .out_stride = hidden,
                        .round_bf16 = round});
  }
  linear(pool, products);

  // Routed experts in ascending id, then the shared ones.
  parallel_rows(pool, tokens, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) {
      float* out = p.out + t * hidden;
      std::fill_n(out, hidden, 0.0f);
      const auto add = [&](std::size_t row) {
        const float* from = y.data() + row * hidden;
        for (std::size_t i = 0; i < hidden; ++i) out[i] += from[i];
      };
      for (std::size_t i = 0; i < k; ++i) add(routing.rows_of_token[t * k + i]);
      for (std::size_t s = 0; s < p.weights->shared.size(); ++s) add(routed_rows + s * tokens + t);
      if (round) {
        for (std::size_t i = 0; i < hidden; ++i) out[i] = round_bf16(out[i]);
      }
    }
  });
}

}  // namespace cupel
