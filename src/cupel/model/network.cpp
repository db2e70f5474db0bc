#include "cupel/model/network.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/attention/kv_codec.h"
#include "cupel/base/error.h"
#include "cupel/formats/bf16.h"
#include "cupel/kernels/hyper_connection.h"
#include "cupel/kernels/linear.h"
#include "cupel/kernels/norm.h"
#include "cupel/model/compressor.h"
#include "cupel/model/latent_attention.h"
#include "cupel/model/moe.h"

namespace cupel {
namespace {

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

Network::Network(const WeightSource& source, const NetworkOptions& options, ThreadPool& pool)
    : config_(source.config()),
      options_(options),
      pool_(pool),
      weights_(load_weights(source, pool, options.weights)),
      backend_(make_backend(options.backend, options.kv_dtype, options.numerics, config_)),
      checkpoint_fingerprint_(source.fingerprint()) {
  RopeSettings rope{.dim = size(config_.rope_dim), .theta = config_.rope_theta};
  plain_frequencies_ = rope_frequencies(rope);
  rope.theta = config_.compress_rope_theta;
  rope.yarn = true;
  rope.factor = config_.yarn_factor;
  rope.beta_fast = config_.yarn_beta_fast;
  rope.beta_slow = config_.yarn_beta_slow;
  rope.original_positions = config_.yarn_original_positions;
  compressed_frequencies_ = rope_frequencies(rope);

  SequenceState state = open();
  for (const auto* states : {&state.compressors, &state.index_compressors}) {
    for (const CompressorState& c : *states) {
      state_bytes_ += (c.values.size() + c.gates.size()) * sizeof(float);
    }
  }
  close(state);
}

std::string describe(const FaultOrigin& origin) {
  if (origin.halves < 0) return "the output head";
  if (origin.halves == 0) return "the embedding";
  return fmt::format("layer {}, {}", (origin.halves - 1) / 2,
                     origin.halves % 2 == 1 ? "attention" : "experts");
}

std::string Network::fingerprint() const {
  return fmt::format("{} {} {} kv={}", checkpoint_fingerprint_, backend_name(options_.backend),
                     numerics_name(options_.numerics), kv_dtype_name(options_.kv_dtype));
}

SequenceState Network::open() {
  SequenceState state;
  state.slot = backend_->open();
  ++open_states_;
  state.compressors.resize(size(config_.layers));
  state.index_compressors.resize(size(config_.layers));
  for (int l = 0; l < config_.layers; ++l) {
    if (!compressed(l)) continue;
    state.compressors[size(l)] = fresh_compressor_state(config_.ratio(l), kKvDim);
    if (config_.kind(l) == LayerKind::kSparse) {
      state.index_compressors[size(l)] = fresh_compressor_state(config_.ratio(l), kIndexDim);
    }
  }
  return state;
}

void Network::close(SequenceState& state) {
  if (state.slot >= 0) {
    backend_->close(state.slot);
    --open_states_;
  }
  state = {};
}

SequenceState Network::fork(const SequenceState& from) {
  SequenceState state = from;
  state.slot = backend_->fork(from.slot, from.length);
  ++open_states_;
  return state;
}

std::size_t Network::sequence_bytes(std::int64_t length) const {
  return backend_->sequence_bytes(length) + state_bytes_;
}

std::size_t Network::cache_bytes() const {
  return backend_->bytes_in_use() + open_states_ * state_bytes_;
}

StepContext Network::make_step(std::span<const SegmentInput> inputs, const StepTaps* taps) const {
  StepContext step;
  step.taps = taps;
  for (const SegmentInput& input : inputs) {
    const std::int64_t start = input.state->length;
    const std::int64_t end = start + static_cast<std::int64_t>(input.ids.size());
    if (end > config_.max_position_embeddings) {
      throw InputError("sequence",
                       fmt::format("at most {} tokens", config_.max_position_embeddings),
                       fmt::format("{}", end));
    }
    step.segments.push_back(
        {.state = input.state, .rows = input.ids.size(), .first_row = step.ids.size()});
    step.attention_segments.push_back({.slot = input.state->slot,
                                       .start = start,
                                       .rows = input.ids.size(),
                                       .first_row = step.ids.size()});
    for (std::size_t i = 0; i < input.ids.size(); ++i) {
      const std::int32_t id = input.ids[i];
      if (id < 0 || id >= config_.vocab_size) {
        throw InputError(fmt::format("token {} of the input", i),
                         fmt::format("an id in [0, {})", config_.vocab_size),
                         fmt::format("{}", id));
      }
      step.ids.push_back(id);
      step.positions.push_back(start + static_cast<std::int64_t>(i));
    }
  }
  step.plain_rope = RopeTable(pool_, plain_frequencies_, step.positions);
  step.compressed_rope = RopeTable(pool_, compressed_frequencies_, step.positions);
  return step;
}

std::vector<float> Network::embed(const StepContext& step) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  std::vector<float> streams(step.rows() * hc * hidden);
  for (std::size_t r = 0; r < step.rows(); ++r) {
    const std::uint16_t* row =
        weights_.embedding.data() + static_cast<std::size_t>(step.ids[r]) * hidden;
    float* out = streams.data() + r * hc * hidden;
    for (std::size_t i = 0; i < hidden; ++i) out[i] = bf16_to_float(row[i]);
    for (std::size_t j = 1; j < hc; ++j) std::copy_n(out, hidden, out + j * hidden);
  }
  return streams;
}

HyperMix Network::mix(int layer, Half half, const float* streams, std::size_t rows) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  const LayerWeights& w = weights_.layers[size(layer)];
  const HyperWeights& hyper = half == Half::kAttention ? w.hc_attn : w.hc_ffn;
  HyperMix mix{.mixed = std::vector<float>(rows * hidden),
               .post = std::vector<float>(rows * hc),
               .comb = std::vector<float>(rows * hc * hc)};
  std::vector<float> mixes(rows * hyper.fn.n());
  hyper_mix(pool_, {.streams = streams,
                    .rows = rows,
                    .hc = hc,
                    .width = hidden,
                    .fn = &hyper.fn,
                    .scale = hyper.scale.data(),
                    .base = hyper.base.data(),
                    .sinkhorn_iters = config_.hc_sinkhorn_iters,
                    .hc_eps = config_.hc_eps,
                    .norm_eps = config_.rms_norm_eps,
                    .round_bf16 = options_.numerics == Numerics::kReference,
                    .mixes = mixes.data(),
                    .mixed = mix.mixed.data(),
                    .post = mix.post.data(),
                    .comb = mix.comb.data()});
  return mix;
}

std::vector<float> Network::half(int layer, Half half, const StepContext& step,
                                 const HyperMix& mix) {
  const LayerWeights& w = weights_.layers[size(layer)];
  const std::size_t rows = step.rows(), hidden = size(config_.hidden_size);
  std::vector<float> x(rows * hidden), y(rows * hidden);
  rms_norm(pool_, {.in = mix.mixed.data(),
                   .weight = (half == Half::kAttention ? w.attn_norm : w.ffn_norm).data(),
                   .out = x.data(),
                   .rows = rows,
                   .width = hidden,
                   .eps = config_.rms_norm_eps,
                   .numerics = options_.numerics});
  if (half == Half::kMoe) {
    moe(pool_, {.config = &config_,
                .weights = &w.moe,
                .numerics = options_.numerics,
                .ids = step.ids,
                .x = x.data(),
                .out = y.data(),
                .layer = layer,
                .taps = step.taps});
    return y;
  }
  latent_attention(
      pool_, {.config = &config_,
              .weights = &w.attention,
              .layer = layer,
              .numerics = options_.numerics,
              .rope_frequencies = compressed(layer) ? compressed_frequencies_ : plain_frequencies_,
              .rope = compressed(layer) ? &step.compressed_rope : &step.plain_rope,
              .backend = backend_.get(),
              .step = &step,
              .x = x.data(),
              .out = y.data()});
  return y;
}

void Network::join(const HyperMix& mix, const float* y, float* streams, std::size_t rows) const {
  hyper_join(pool_, {.y = y,
                     .post = mix.post.data(),
                     .comb = mix.comb.data(),
                     .streams = streams,
                     .rows = rows,
                     .hc = size(config_.hc_mult),
                     .width = size(config_.hidden_size),
                     .round_bf16 = options_.numerics == Numerics::kReference});
}

std::vector<float> Network::final_hidden(const float* streams, std::size_t rows) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  std::vector<float> y(rows * hidden), mixes(rows * hc);
  hyper_head(pool_, {.streams = streams,
                     .rows = rows,
                     .hc = hc,
                     .width = hidden,
                     .fn = &weights_.hc_head.fn,
                     .scale = weights_.hc_head.scale.data(),
                     .base = weights_.hc_head.base.data(),
                     .hc_eps = config_.hc_eps,
                     .norm_eps = config_.rms_norm_eps,
                     .round_bf16 = options_.numerics == Numerics::kReference,
                     .mixes = mixes.data(),
                     .mixed = y.data()});
  rms_norm(pool_, {.in = y.data(),
                   .weight = weights_.norm.data(),
                   .out = y.data(),
                   .rows = rows,
                   .width = hidden,
                   .eps = config_.rms_norm_eps,
                   .numerics = options_.numerics});
  return y;
}

std::vector<float> Network::logits(const float* hidden, std::size_t rows) const {
  const std::size_t vocab = size(config_.vocab_size), width = size(config_.hidden_size);
  std::vector<float> out(rows * vocab);
  linear(pool_, {.x = hidden,
                 .x_stride = width,
                 .rows = rows,
                 .weight = &weights_.head,
                 .out = out.data(),
                 .out_stride = vocab});
  return out;
}

std::vector<float> Network::forward(std::span<const SegmentInput> inputs,
                                    std::span<const std::size_t> logits_rows, const StepTaps* taps,
                                    std::vector<FaultOrigin>* origins) {
  const StepContext step = make_step(inputs, taps);
  const std::size_t rows = step.rows(), hidden = size(config_.hidden_size);
  const std::size_t flat = size(config_.hc_mult) * hidden;
  const auto tap = [&](std::string_view name, int layer, std::span<const float> v,
                       std::size_t width) {
    if (taps != nullptr && taps->values) taps->values(name, layer, v, width);
  };

  if (origins != nullptr) origins->assign(logits_rows.size(), {});
  // A row whose streams hold a NaN or an infinity has mixture weights that are NaN.
  const auto look_for_faults = [&](const HyperMix& mixed, int halves) {
    for (std::size_t i = 0; origins != nullptr && i < logits_rows.size(); ++i) {
      FaultOrigin& origin = (*origins)[i];
      const float seen = mixed.post[logits_rows[i] * size(config_.hc_mult)];
      if (origin.halves < 0 && !std::isfinite(seen)) origin.halves = halves;
    }
  };

  std::vector<float> streams = embed(step);
  for (int layer = 0; layer < config_.layers; ++layer) {
    for (const Half part : {Half::kAttention, Half::kMoe}) {
      const HyperMix mixed = mix(layer, part, streams.data(), rows);
      look_for_faults(mixed, 2 * layer + (part == Half::kMoe ? 1 : 0));
      const std::vector<float> y = half(layer, part, step, mixed);
      tap(part == Half::kAttention ? "attn_out" : "ffn_out", layer, y, hidden);
      join(mixed, y.data(), streams.data(), rows);
    }
    tap("streams", layer, streams, flat);
  }
  for (const SegmentInput& input : inputs) {
    input.state->length += static_cast<std::int64_t>(input.ids.size());
  }

  std::vector<float> last(logits_rows.size() * flat);
  for (std::size_t i = 0; i < logits_rows.size(); ++i) {
    float* row = last.data() + i * flat;
    std::copy_n(streams.data() + logits_rows[i] * flat, flat, row);
    if (origins == nullptr || (*origins)[i].halves >= 0) continue;
    if (!std::all_of(row, row + flat, [](float x) { return std::isfinite(x); })) {
      (*origins)[i].halves = 2 * config_.layers;
    }
  }
  const std::vector<float> z = final_hidden(last.data(), logits_rows.size());
  tap("final_hidden", -1, z, hidden);
  return logits(z.data(), logits_rows.size());
}

}  // namespace cupel
