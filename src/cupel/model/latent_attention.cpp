#include "cupel/model/latent_attention.h"

#include <cmath>
#include <vector>

#include "cupel/attention/kv_codec.h"
#include "cupel/model/compressor.h"

namespace cupel {
namespace {

class LatentAttention {
 public:
  LatentAttention(Executor& executor, const LatentAttentionParams& params)
      : executor_(executor),
        p_(params),
        config_(*params.config),
        w_(*params.weights),
        rows_(params.step->rows()),
        heads_(static_cast<std::size_t>(config_.heads)),
        hidden_(static_cast<std::size_t>(config_.hidden_size)),
        rank_(static_cast<std::size_t>(config_.q_lora_rank)),
        round_(params.numerics == Numerics::kReference) {}

  void run() {
    project();
    if (w_.compressor) entries_ = compressed(*w_.compressor, kKvDim, &SequenceState::compressors);
    if (w_.indexer) index();
    attend();
    project_output();
  }

 private:
  // x in front of a quantised product: on the e4m3 grid, or as it is with numerics float32.
  const float* quantised(const float* x, std::size_t width, DeviceArray<float>& out) const {
    if (!round_) return x;
    out = {executor_, rows_ * width};
    executor_.quantise_activation({.in = x, .out = out.data(), .rows = rows_, .width = width});
    return out.data();
  }

  LinearParams product(const float* x, const Weight& weight, DeviceArray<float>& out) const {
    out = {executor_, rows_ * weight->n()};
    return {.x = x,
            .x_stride = weight->k(),
            .rows = rows_,
            .weight = weight.get(),
            .out = out.data(),
            .out_stride = weight->n(),
            .round_bf16 = round_};
  }

  void norm(DeviceArray<float>& x, const DeviceArray<float>& weight) const {
    executor_.rms_norm({.in = x.data(),
                        .weight = weight.data(),
                        .out = x.data(),
                        .rows = rows_,
                        .width = weight.size(),
                        .eps = config_.rms_norm_eps,
                        .numerics = p_.numerics});
  }

  void rotate(DeviceArray<float>& x, std::size_t vectors, std::size_t width, bool inverse) const {
    executor_.rope({.x = x.data(),
                    .rows = rows_,
                    .vectors = vectors,
                    .width = width,
                    .dim = p_.rope->dim,
                    .cosines = p_.rope->cosines.data(),
                    .sines = p_.rope->sines.data(),
                    .inverse = inverse,
                    .round_bf16 = round_});
  }

  // Steps 3.5.1 to 3.5.5: q and kv, normed and rotated; qr kept for the indexer.
  void project() {
    DeviceArray<float> scratch;
    const float* x = quantised(p_.x, hidden_, scratch);
    const LinearParams down[] = {product(x, w_.wq_a, qr_), product(x, w_.wkv, kv_)};
    executor_.linear(down);
    norm(qr_, w_.q_norm);
    norm(kv_, w_.kv_norm);
    if (round_) {
      executor_.quantise_activation(
          {.in = qr_.data(), .out = qr_.data(), .rows = rows_, .width = rank_});
    }
    executor_.linear(product(qr_.data(), w_.wq_b, q_));
    executor_.head_norm({.x = q_.data(),
                         .rows = rows_ * heads_,
                         .width = kKvDim,
                         .eps = config_.rms_norm_eps,
                         .numerics = p_.numerics});
    rotate(q_, heads_, kKvDim, false);
    rotate(kv_, 1, kKvDim, false);
  }

  DeviceArray<float> compressed(const CompressorWeights& weights, std::size_t dim,
                                std::vector<CompressorState> SequenceState::*member) const {
    std::vector<CompressorState*> states;
    states.reserve(p_.step->segments.size());
    for (const Segment& segment : p_.step->segments) {
      states.push_back(&(segment.state->*member)[static_cast<std::size_t>(p_.layer)]);
    }
    return compress(executor_,
                    {.ratio = config_.ratio(p_.layer),
                     .dim = dim,
                     .norm_eps = config_.rms_norm_eps,
                     .numerics = p_.numerics,
                     .rope_frequencies = p_.rope_frequencies},
                    weights, *p_.step, states, p_.x);
  }

  // Steps 3.8.1, 3.8.2, 3.8.5: the indexer's keys, queries and head weights before quantisation.
  void index() {
    index_keys_ = compressed(w_.indexer->compressor, kIndexDim, &SequenceState::index_compressors);
    const auto index_heads = static_cast<std::size_t>(config_.index_heads);
    const LinearParams products[] = {product(qr_.data(), w_.indexer->wq_b, index_q_),
                                     product(p_.x, w_.indexer->weights_proj, index_weights_)};
    executor_.linear(products);
    rotate(index_q_, index_heads, kIndexDim, false);
    for (auto* x : {&index_keys_, &index_q_}) {
      executor_.hadamard({.x = x->data(),
                          .rows = x->size() / kIndexDim,
                          .width = kIndexDim,
                          .round_bf16 = round_});
    }
    const double factor = 1.0 / std::sqrt(static_cast<double>(kIndexDim)) /
                          std::sqrt(static_cast<double>(index_heads));
    executor_.scale({.x = index_weights_.data(),
                     .count = index_weights_.size(),
                     .factor = static_cast<float>(factor),
                     .round_bf16 = round_});
  }

  void attend() {
    out_ = {executor_, rows_ * heads_ * kKvDim};
    const StepTaps* taps = p_.step->taps;
    DeviceArray<std::int32_t> selection;
    if (taps != nullptr && taps->selection && w_.indexer) {
      selection = {executor_, rows_ * static_cast<std::size_t>(config_.index_topk)};
    }
    const AttentionStep attention{.layer = p_.layer,
                                  .segments = p_.step->attention_segments,
                                  .q = q_.data(),
                                  .kv = kv_.data(),
                                  .entries = entries_.data(),
                                  .index_keys = index_keys_.data(),
                                  .index_q = index_q_.data(),
                                  .index_weights = index_weights_.data(),
                                  .sink = w_.sink.data(),
                                  .out = out_.data(),
                                  .selection = selection.data()};
    if (taps != nullptr && taps->attention) tap(attention);
    p_.backend->attend(attention);
    if (!selection.empty()) taps->selection(p_.layer, selection.to_host());
    q_ = {};  // as large as out_, and not needed by the largest of the products
    rotate(out_, heads_, kKvDim, true);
  }

  // Shows what the backend is given, copied to the host.
  void tap(AttentionStep attention) const {
    const std::vector<float> q = q_.to_host(), kv = kv_.to_host(), entries = entries_.to_host(),
                             index_keys = index_keys_.to_host(), index_q = index_q_.to_host(),
                             index_weights = index_weights_.to_host(), sink = w_.sink.to_host();
    attention.q = q.data();
    attention.kv = kv.data();
    attention.entries = entries.data();
    attention.index_keys = index_keys.data();
    attention.index_q = index_q.data();
    attention.index_weights = index_weights.data();
    attention.sink = sink.data();
    attention.out = nullptr;
    attention.selection = nullptr;
    p_.step->taps->attention(attention);
  }

  // Section 3.10: grouped bf16 product, then the quantised one.
  void project_output() const {
    const std::size_t groups = w_.wo_a.size(), group_in = heads_ * kKvDim / groups;
    const std::size_t group_out = w_.wo_a[0]->n();
    DeviceArray<float> t(executor_, rows_ * groups * group_out);
    std::vector<LinearParams> products;
    for (std::size_t g = 0; g < groups; ++g) {
      products.push_back({.x = out_.data() + g * group_in,
                          .x_stride = heads_ * kKvDim,
                          .rows = rows_,
                          .weight = w_.wo_a[g].get(),
                          .out = t.data() + g * group_out,
                          .out_stride = groups * group_out,
                          .round_bf16 = round_});
    }
    executor_.linear(products);
    DeviceArray<float> scratch;
    executor_.linear({.x = quantised(t.data(), groups * group_out, scratch),
                      .x_stride = groups * group_out,
                      .rows = rows_,
                      .weight = w_.wo_b.get(),
                      .out = p_.out,
                      .out_stride = hidden_,
                      .round_bf16 = round_});
  }

  Executor& executor_;
  const LatentAttentionParams& p_;
  const ModelConfig& config_;
  const AttentionWeights& w_;
  std::size_t rows_, heads_, hidden_, rank_;
  bool round_;
  DeviceArray<float> q_;        // [rows, heads, 512]
  DeviceArray<float> kv_;       // [rows, 512]
  DeviceArray<float> qr_;       // [rows, q_rank], quantised
  DeviceArray<float> entries_;  // [completed, 512]
  // Ratio 4: [completed, 128], [rows, index_heads, 128], [rows, index_heads].
  DeviceArray<float> index_keys_, index_q_, index_weights_;
  DeviceArray<float> out_;  // [rows, heads, 512]
};

}  // namespace

void latent_attention(Executor& executor, const LatentAttentionParams& params) {
  LatentAttention(executor, params).run();
}

}  // namespace cupel
