#include "cupel/model/moe.h"

#include <vector>

namespace cupel {
namespace {

class MixtureOfExperts {
 public:
  MixtureOfExperts(Executor& executor, const MoeParams& params)
      : executor_(executor),
        p_(params),
        w_(*params.weights),
        hidden_(static_cast<std::size_t>(params.config->hidden_size)),
        width_(static_cast<std::size_t>(params.config->expert_width)),
        k_(static_cast<std::size_t>(params.config->experts_per_token)),
        routed_rows_(params.rows * k_),
        batch_(routed_rows_ + params.rows * w_.shared.size()),
        round_(params.numerics == Numerics::kReference) {}

  void run() {
    tap("ffn_in", p_.x, p_.rows * hidden_, hidden_);
    route();

    const float* x = p_.x;
    DeviceArray<float> quantised;
    if (round_) {
      quantised = {executor_, p_.rows * hidden_};
      executor_.quantise_activation(
          {.in = p_.x, .out = quantised.data(), .rows = p_.rows, .width = hidden_});
      x = quantised.data();
    }
    DeviceArray<float> gathered(executor_, routed_rows_ * hidden_);
    executor_.gather_rows({.in = x,
                           .index = source_rows_.data(),
                           .rows = routed_rows_,
                           .width = hidden_,
                           .out = gathered.data()});

    DeviceArray<float> gate(executor_, batch_ * width_), up(executor_, batch_ * width_);
    products({.routed = gathered.data(), .shared = x, .width = hidden_},
             {{&ExpertWeights::w1, gate.data()}, {&ExpertWeights::w3, up.data()}}, width_);
    gathered = {};
    executor_.swiglu({.gate = gate.data(),
                      .up = up.data(),
                      .weight = batch_weights_.data(),
                      .out = gate.data(),
                      .rows = batch_,
                      .width = width_,
                      .limit = p_.config->swiglu_limit,
                      .round_bf16 = round_});
    tap("expert_hidden", gate.data(), batch_ * width_, width_);
    if (round_) {
      executor_.quantise_activation(
          {.in = gate.data(), .out = gate.data(), .rows = batch_, .width = width_});
    }
    DeviceArray<float> y(executor_, batch_ * hidden_);
    products({.routed = gate.data(),
              .shared = gate.data() + routed_rows_ * width_,
              .shared_step = p_.rows * width_,
              .width = width_},
             {{&ExpertWeights::w2, y.data()}}, hidden_);
    executor_.expert_sum({.y = y.data(),
                          .batch_rows = batch_rows_.data(),
                          .rows = p_.rows,
                          .k = k_,
                          .shared = w_.shared.size(),
                          .width = hidden_,
                          .out = p_.out,
                          .round_bf16 = round_});
  }

 private:
  struct Input {
    const float* routed;          // [routed rows, width], in batch order
    const float* shared;          // [rows, width] of the first shared expert
    std::size_t shared_step = 0;  // to those of the next
    std::size_t width;
  };
  // One of an expert's matrices, and where its product goes, [batch, n].
  struct Output {
    Weight ExpertWeights::*weight;
    float* out;
  };

  // Fills offsets_ to batch_rows_.
  void route() {
    const std::size_t experts = w_.experts.size();
    DeviceArray<float> logits(executor_, p_.rows * experts), weights(executor_, routed_rows_);
    executor_.linear({.x = p_.x,
                      .x_stride = hidden_,
                      .rows = p_.rows,
                      .weight = w_.gate.get(),
                      .out = logits.data(),
                      .out_stride = experts});
    tap("router_logits", logits.data(), logits.size(), experts);
    DeviceArray<std::int32_t> chosen(executor_, routed_rows_);
    executor_.route({.logits = logits.data(),
                     .rows = p_.rows,
                     .experts = experts,
                     .bias = w_.bias.data(),
                     .by_id = w_.tid2eid.data(),
                     .ids = p_.ids,
                     .k = k_,
                     .scaling = p_.config->routed_scaling_factor,
                     .chosen = chosen.data(),
                     .weights = weights.data()});
    offsets_ = {executor_, experts + 1};
    source_rows_ = {executor_, routed_rows_};
    batch_weights_ = {executor_, batch_};
    batch_rows_ = {executor_, routed_rows_};
    executor_.expert_batch({.chosen = chosen.data(),
                            .weights = weights.data(),
                            .rows = p_.rows,
                            .k = k_,
                            .experts = experts,
                            .shared_rows = batch_ - routed_rows_,
                            .offsets = offsets_.data(),
                            .source_rows = source_rows_.data(),
                            .batch_weights = batch_weights_.data(),
                            .batch_rows = batch_rows_.data()});
  }

  // The products of all experts, [batch, out_width] each, as one call.
  void products(const Input& in, std::initializer_list<Output> outputs,
                std::size_t out_width) const {
    std::vector<LinearParams> all;
    for (std::size_t e = 0; e < w_.experts.size(); ++e) {
      for (const Output& o : outputs) {
        all.push_back({.x = in.routed,
                       .x_stride = in.width,
                       .rows = routed_rows_,
                       .row_range = offsets_.data() + e,
                       .weight = (w_.experts[e].*o.weight).get(),
                       .out = o.out,
                       .out_stride = out_width,
                       .round_bf16 = round_});
      }
    }
    for (std::size_t s = 0; s < w_.shared.size(); ++s) {
      for (const Output& o : outputs) {
        all.push_back({.x = in.shared + s * in.shared_step,
                       .x_stride = in.width,
                       .rows = p_.rows,
                       .weight = (w_.shared[s].*o.weight).get(),
                       .out = o.out + (routed_rows_ + s * p_.rows) * out_width,
                       .out_stride = out_width,
                       .round_bf16 = round_});
      }
    }
    executor_.linear(all);
  }

  void tap(std::string_view name, const float* values, std::size_t count, std::size_t width) const {
    if (p_.taps == nullptr || !p_.taps->values) return;
    std::vector<float> host(count);
    executor_.to_host(host.data(), values, count * sizeof(float));
    p_.taps->values(name, p_.layer, host, width);
  }

  Executor& executor_;
  const MoeParams& p_;
  const MoeWeights& w_;
  std::size_t hidden_, width_, k_;
  std::size_t routed_rows_, batch_;  // rows of the routed experts; with those of the shared
  bool round_;
  DeviceArray<std::int32_t> offsets_, source_rows_, batch_rows_;  // see ExpertBatchParams
  DeviceArray<float> batch_weights_;
};

}  // namespace

void moe(Executor& executor, const MoeParams& params) {
  MixtureOfExperts(executor, params).run();
}

}  // namespace cupel
