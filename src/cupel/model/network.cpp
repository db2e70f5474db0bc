#include "cupel/model/network.h"

#include <fmt/format.h>

#include "cupel/attention/kv_codec.h"
#include "cupel/base/error.h"
#include "cupel/model/compressor.h"
#include "cupel/model/latent_attention.h"
#include "cupel/model/moe.h"

namespace cupel {
namespace {

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

Network::Network(const WeightSource& source, const NetworkOptions& options, Executor& executor,
                 const BackendFactory& backends)
    : config_(source.config()),
      options_(options),
      executor_(executor),
      weights_(load_weights(source, executor, options.weights)),
      backend_(backends(options.backend, options.kv_dtype, options.numerics, config_, executor)),
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
      state_bytes_ += c.values.bytes() + c.gates.bytes();
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
    state.compressors[size(l)] = fresh_compressor_state(executor_, config_.ratio(l), kKvDim);
    if (config_.kind(l) == LayerKind::kSparse) {
      state.index_compressors[size(l)] =
          fresh_compressor_state(executor_, config_.ratio(l), kIndexDim);
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
  const auto clone = [](const std::vector<CompressorState>& states) {
    std::vector<CompressorState> clones;
    clones.reserve(states.size());
    for (const CompressorState& c : states) {
      clones.push_back({.values = c.values.clone(), .gates = c.gates.clone()});
    }
    return clones;
  };
  ++open_states_;
  return {.slot = backend_->fork(from.slot, from.length),
          .length = from.length,
          .compressors = clone(from.compressors),
          .index_compressors = clone(from.index_compressors)};
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
  std::vector<std::int32_t> ids;
  for (const SegmentInput& input : inputs) {
    const std::int64_t start = input.state->length;
    const std::int64_t end = start + static_cast<std::int64_t>(input.ids.size());
    if (end > config_.max_position_embeddings) {
      throw InputError("sequence",
                       fmt::format("at most {} tokens", config_.max_position_embeddings),
                       fmt::format("{}", end));
    }
    step.segments.push_back(
        {.state = input.state, .rows = input.ids.size(), .first_row = ids.size()});
    step.attention_segments.push_back({.slot = input.state->slot,
                                       .start = start,
                                       .rows = input.ids.size(),
                                       .first_row = ids.size()});
    for (std::size_t i = 0; i < input.ids.size(); ++i) {
      const std::int32_t id = input.ids[i];
      if (id < 0 || id >= config_.vocab_size) {
        throw InputError(fmt::format("token {} of the input", i),
                         fmt::format("an id in [0, {})", config_.vocab_size),
                         fmt::format("{}", id));
      }
      ids.push_back(id);
      step.positions.push_back(start + static_cast<std::int64_t>(i));
    }
  }
  step.ids = {executor_, ids};
  step.plain_rope = RopeTable(executor_, plain_frequencies_, step.positions);
  step.compressed_rope = RopeTable(executor_, compressed_frequencies_, step.positions);
  return step;
}

DeviceArray<float> Network::embed(const StepContext& step) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  DeviceArray<float> streams(executor_, step.rows() * hc * hidden);
  executor_.embed({.table = weights_.embedding.data(),
                   .ids = step.ids.data(),
                   .rows = step.rows(),
                   .copies = hc,
                   .width = hidden,
                   .out = streams.data()});
  return streams;
}

DeviceArray<float> Network::hyper_products(const HyperWeights& hyper, const float* streams,
                                           std::size_t rows) const {
  const std::size_t outputs = hyper.fn->n(), flat = hyper.fn->k();
  DeviceArray<float> mixes(executor_, rows * outputs);
  executor_.linear({.x = streams,
                    .x_stride = flat,
                    .rows = rows,
                    .weight = hyper.fn.get(),
                    .out = mixes.data(),
                    .out_stride = outputs});
  return mixes;
}

HyperMix Network::mix(int layer, Half half, const float* streams, std::size_t rows) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  const LayerWeights& w = weights_.layers[size(layer)];
  const HyperWeights& hyper = half == Half::kAttention ? w.hc_attn : w.hc_ffn;
  HyperMix mix{.mixed = {executor_, rows * hidden},
               .post = {executor_, rows * hc},
               .comb = {executor_, rows * hc * hc}};
  DeviceArray<float> mixes = hyper_products(hyper, streams, rows);
  executor_.hyper_mix({.streams = streams,
                       .rows = rows,
                       .hc = hc,
                       .width = hidden,
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

DeviceArray<float> Network::half(int layer, Half half, const StepContext& step,
                                 const HyperMix& mix) {
  const LayerWeights& w = weights_.layers[size(layer)];
  const std::size_t rows = step.rows(), hidden = size(config_.hidden_size);
  DeviceArray<float> x(executor_, rows * hidden), y(executor_, rows * hidden);
  executor_.rms_norm({.in = mix.mixed.data(),
                      .weight = (half == Half::kAttention ? w.attn_norm : w.ffn_norm).data(),
                      .out = x.data(),
                      .rows = rows,
                      .width = hidden,
                      .eps = config_.rms_norm_eps,
                      .numerics = options_.numerics});
  if (half == Half::kMoe) {
    moe(executor_, {.config = &config_,
                    .weights = &w.moe,
                    .numerics = options_.numerics,
                    .rows = rows,
                    .ids = step.ids.data(),
                    .x = x.data(),
                    .out = y.data(),
                    .layer = layer,
                    .taps = step.taps});
    return y;
  }
  latent_attention(executor_, {.config = &config_,
                               .weights = &w.attention,
                               .layer = layer,
                               .numerics = options_.numerics,
                               .rope_frequencies =
                                   compressed(layer) ? compressed_frequencies_ : plain_frequencies_,
                               .rope = compressed(layer) ? &step.compressed_rope : &step.plain_rope,
                               .backend = backend_.get(),
                               .step = &step,
                               .x = x.data(),
                               .out = y.data()});
  return y;
}

void Network::join(const HyperMix& mix, const float* y, float* streams, std::size_t rows) const {
  executor_.hyper_join({.y = y,
                        .post = mix.post.data(),
                        .comb = mix.comb.data(),
                        .streams = streams,
                        .rows = rows,
                        .hc = size(config_.hc_mult),
                        .width = size(config_.hidden_size),
                        .round_bf16 = options_.numerics == Numerics::kReference});
}

DeviceArray<float> Network::final_hidden(const float* streams, std::size_t rows) const {
  const std::size_t hidden = size(config_.hidden_size), hc = size(config_.hc_mult);
  const DeviceArray<float> mixes = hyper_products(weights_.hc_head, streams, rows);
  DeviceArray<float> y(executor_, rows * hidden);
  executor_.hyper_head({.streams = streams,
                        .rows = rows,
                        .hc = hc,
                        .width = hidden,
                        .scale = weights_.hc_head.scale.data(),
                        .base = weights_.hc_head.base.data(),
                        .hc_eps = config_.hc_eps,
                        .norm_eps = config_.rms_norm_eps,
                        .round_bf16 = options_.numerics == Numerics::kReference,
                        .mixes = mixes.data(),
                        .mixed = y.data()});
  executor_.rms_norm({.in = y.data(),
                      .weight = weights_.norm.data(),
                      .out = y.data(),
                      .rows = rows,
                      .width = hidden,
                      .eps = config_.rms_norm_eps,
                      .numerics = options_.numerics});
  return y;
}

DeviceArray<float> Network::logits(const float* hidden, std::size_t rows) const {
  const std::size_t vocab = size(config_.vocab_size), width = size(config_.hidden_size);
  DeviceArray<float> out(executor_, rows * vocab);
  executor_.linear({.x = hidden,
                    .x_stride = width,
                    .rows = rows,
                    .weight = weights_.head.get(),
                    .out = out.data(),
                    .out_stride = vocab});
  return out;
}

std::vector<float> Network::forward(std::span<const SegmentInput> inputs,
                                    std::span<const std::size_t> logits_rows, const StepTaps* taps,
                                    std::vector<FaultOrigin>* origins) {
  const StepContext step = make_step(inputs, taps);
  const std::size_t rows = step.rows(), hidden = size(config_.hidden_size);
  const std::size_t hc = size(config_.hc_mult), flat = hc * hidden, wanted = logits_rows.size();
  const auto tap = [&](std::string_view name, int layer, const DeviceArray<float>& values,
                       std::size_t width) {
    if (taps != nullptr && taps->values) taps->values(name, layer, values.to_host(), width);
  };

  const std::vector<std::int32_t> wanted_rows(logits_rows.begin(), logits_rows.end());
  const DeviceArray<std::int32_t> index(executor_, wanted_rows);
  const std::vector<std::int32_t> none(wanted, FaultOrigin{}.halves);
  DeviceArray<std::int32_t> faults(executor_, none);
  const auto look_for_faults = [&](const DeviceArray<float>& x, std::size_t width, int halves) {
    if (origins == nullptr) return;
    executor_.mark_not_finite({.x = x.data(),
                               .index = index.data(),
                               .rows = wanted,
                               .width = width,
                               .mark = halves,
                               .marks = faults.data()});
  };

  DeviceArray<float> streams = embed(step);
  for (int layer = 0; layer < config_.layers; ++layer) {
    for (const Half part : {Half::kAttention, Half::kMoe}) {
      const HyperMix mixed = mix(layer, part, streams.data(), rows);
      // A row whose streams hold a NaN or an infinity has mixture weights that are NaN.
      look_for_faults(mixed.post, hc, 2 * layer + (part == Half::kMoe ? 1 : 0));
      const DeviceArray<float> y = half(layer, part, step, mixed);
      tap(part == Half::kAttention ? "attn_out" : "ffn_out", layer, y, hidden);
      join(mixed, y.data(), streams.data(), rows);
    }
    tap("streams", layer, streams, flat);
  }
  for (const SegmentInput& input : inputs) {
    input.state->length += static_cast<std::int64_t>(input.ids.size());
  }
  look_for_faults(streams, flat, 2 * config_.layers);

  DeviceArray<float> last(executor_, wanted * flat);
  executor_.gather_rows({.in = streams.data(),
                         .index = index.data(),
                         .rows = wanted,
                         .width = flat,
                         .out = last.data()});
  const DeviceArray<float> z = final_hidden(last.data(), wanted);
  tap("final_hidden", -1, z, hidden);
  std::vector<float> out = logits(z.data(), wanted).to_host();
  if (origins != nullptr) {
    origins->clear();
    for (const std::int32_t halves : faults.to_host()) origins->push_back({.halves = halves});
  }
  return out;
}

}  // namespace cupel
