#include "cupel/model/latent_attention.h"

#include <cmath>
#include <vector>

#include "cupel/attention/kv_codec.h"
#include "cupel/kernels/activation.h"
#include "cupel/kernels/elementwise.h"
#include "cupel/kernels/linear.h"
#include "cupel/kernels/norm.h"
#include "cupel/model/compressor.h"

namespace cupel {
namespace {

class LatentAttention {
 public:
  LatentAttention(ThreadPool& pool, const LatentAttentionParams& params)
      : pool_(pool),
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
    std::vector<float> entries, index_keys, index_q, index_weights;
    if (w_.compressor) entries = compressed(*w_.compressor, kKvDim, &SequenceState::compressors);
    if (w_.indexer) index(index_keys, index_q, index_weights);
    attend(entries, index_keys, index_q, index_weights);
    project_output();
  }

 private:
  // x in front of a quantised product: on the e4m3 grid, or as it is with numerics float32.
  std::vector<float> quantised(const float* x, std::size_t width) const {
    std::vector<float> out(x, x + rows_ * width);
    if (round_) {
      quantise_activation(pool_, {.in = x, .out = out.data(), .rows = rows_, .width = width});
    }
    return out;
  }

  LinearParams product(const float* x, const PackedMatrix& weight, std::vector<float>& out) const {
    out.resize(rows_ * weight.n());
    return {.x = x,
            .x_stride = weight.k(),
            .rows = rows_,
            .weight = &weight,
            .out = out.data(),
            .out_stride = weight.n(),
            .round_bf16 = round_};
  }

  void norm(std::vector<float>& x, const std::vector<float>& weight) const {
    rms_norm(pool_, {.in = x.data(),
                     .weight = weight.data(),
                     .out = x.data(),
                     .rows = rows_,
                     .width = weight.size(),
                     .eps = config_.rms_norm_eps,
                     .numerics = p_.numerics});
  }

  void rotate(std::vector<float>& x, std::size_t vectors, std::size_t width, bool inverse) const {
    rope(pool_, {.x = x.data(),
                 .rows = rows_,
                 .vectors = vectors,
                 .width = width,
                 .table = p_.rope,
                 .inverse = inverse,
                 .round_bf16 = round_});
  }

  // Steps 3.5.1 to 3.5.5: q and kv, normed and rotated; qr kept for the indexer.
  void project() {
    const std::vector<float> x = quantised(p_.x, hidden_);
    std::vector<float> qr;
    const LinearParams down[] = {product(x.data(), w_.wq_a, qr), product(x.data(), w_.wkv, kv_)};
    linear(pool_, down);
    norm(qr, w_.q_norm);
    norm(kv_, w_.kv_norm);
    qr_ = quantised(qr.data(), rank_);
    linear(pool_, product(qr_.data(), w_.wq_b, q_));
    head_norm(pool_, {.x = q_.data(),
                      .rows = rows_ * heads_,
                      .width = kKvDim,
                      .eps = config_.rms_norm_eps,
                      .numerics = p_.numerics});
    rotate(q_, heads_, kKvDim, false);
    rotate(kv_, 1, kKvDim, false);
  }

  std::vector<float> compressed(const CompressorWeights& weights, std::size_t dim,
                                std::vector<CompressorState> SequenceState::*member) const {
    std::vector<CompressorState*> states;
    states.reserve(p_.step->segments.size());
    for (const Segment& segment : p_.step->segments) {
      states.push_back(&(segment.state->*member)[static_cast<std::size_t>(p_.layer)]);
    }
    return compress(pool_,
                    {.ratio = config_.ratio(p_.layer),
                     .dim = dim,
                     .norm_eps = config_.rms_norm_eps,
                     .numerics = p_.numerics,
                     .rope_frequencies = p_.rope_frequencies},
                    weights, *p_.step, states, p_.x);
  }

  // Steps 3.8.1, 3.8.2, 3.8.5: the indexer's keys, queries and head weights before quantisation.
  void index(std::vector<float>& keys, std::vector<float>& q, std::vector<float>& weights) const {
    keys = compressed(w_.indexer->compressor, kIndexDim, &SequenceState::index_compressors);
    const auto index_heads = static_cast<std::size_t>(config_.index_heads);
    const LinearParams products[] = {product(qr_.data(), w_.indexer->wq_b, q),
                                     product(p_.x, w_.indexer->weights_proj, weights)};
    linear(pool_, products);
    rotate(q, index_heads, kIndexDim, false);
    for (auto* x : {&keys, &q}) {
      hadamard(pool_, {.x = x->data(),
                       .rows = x->size() / kIndexDim,
                       .width = kIndexDim,
                       .round_bf16 = round_});
    }
    const double factor = 1.0 / std::sqrt(static_cast<double>(kIndexDim)) /
                          std::sqrt(static_cast<double>(index_heads));
    scale(weights.data(), weights.size(), static_cast<float>(factor), round_);
  }

  void attend(const std::vector<float>& entries, const std::vector<float>& index_keys,
              const std::vector<float>& index_q, const std::vector<float>& index_weights) {
    out_.resize(rows_ * heads_ * kKvDim);
    std::vector<std::int32_t> selection;
    const StepTaps* taps = p_.step->taps;
    const bool tap = taps != nullptr && taps->selection && w_.indexer;
    if (tap) selection.resize(rows_ * static_cast<std::size_t>(config_.index_topk));
    const AttentionStep attention{.layer = p_.layer,
                                  .segments = p_.step->attention_segments,
                                  .q = q_.data(),
                                  .kv = kv_.data(),
                                  .entries = entries.data(),
                                  .index_keys = index_keys.data(),
                                  .index_q = index_q.data(),
                                  .index_weights = index_weights.data(),
                                  .sink = w_.sink.data(),
                                  .out = out_.data(),
                                  .selection = tap ? selection.data() : nullptr};
    if (taps != nullptr && taps->attention) taps->attention(attention);
    p_.backend->attend(pool_, attention);
    if (tap) taps->selection(p_.layer, selection);
    rotate(out_, heads_, kKvDim, true);
  }

  // Section 3.10: grouped bf16 product, then the quantised one.
  void project_output() const {
    const std::size_t groups = w_.wo_a.size(), group_in = heads_ * kKvDim / groups;
    const std::size_t group_out = w_.wo_a[0].n();
    std::vector<float> t(rows_ * groups * group_out);
    std::vector<LinearParams> products;
    for (std::size_t g = 0; g < groups; ++g) {
      products.push_back({.x = out_.data() + g * group_in,
                          .x_stride = heads_ * kKvDim,
                          .rows = rows_,
                          .weight = &w_.wo_a[g],
                          .out = t.data() + g * group_out,
                          .out_stride = groups * group_out,
                          .round_bf16 = round_});
    }
    linear(pool_, products);
    const std::vector<float> x = quantised(t.data(), groups * group_out);
    linear(pool_, {.x = x.data(),
                   .x_stride = groups * group_out,
                   .rows = rows_,
                   .weight = &w_.wo_b,
                   .out = p_.out,
                   .out_stride = hidden_,
                   .round_bf16 = round_});
  }

  ThreadPool& pool_;
  const LatentAttentionParams& p_;
  const ModelConfig& config_;
  const AttentionWeights& w_;
  std::size_t rows_, heads_, hidden_, rank_;
  bool round_;
  std::vector<float> q_;    // [rows, heads, 512]
  std::vector<float> kv_;   // [rows, 512]
  std::vector<float> qr_;   // [rows, q_rank], quantised
  std::vector<float> out_;  // [rows, heads, 512]
};

}  // namespace

void latent_attention(ThreadPool& pool, const LatentAttentionParams& params) {
  LatentAttention(pool, params).run();
}

}  // namespace cupel
