#include "cupel/preflight/activation_collector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "cupel/attention/index_keys.h"
#include "cupel/attention/kv_codec.h"
#include "cupel/attention/row_gather.h"
#include "cupel/formats/quantise.h"
#include "cupel/kernels/activation.h"
#include "cupel/kernels/router.h"

namespace cupel {
namespace {

// Rows of a pass that are looked at where a look costs as much as attention itself.
constexpr std::size_t kSampledRows = 32;

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

// Evenly spread, the last row among them.
std::vector<std::size_t> sample_rows(std::size_t rows) {
  const std::size_t count = std::min(rows, kSampledRows);
  std::vector<std::size_t> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rows * (i + 1) / count - 1;
  return out;
}

float dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t kLanes = 16;  // independent sums: the compiler keeps them in vectors
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

void fake_quantise_index_fp8(const float* row, float* out) {
  std::array<std::uint8_t, kIndexDim> codes{};
  float scale = 0;
  encode_index_fp8(row, codes.data(), &scale);
  decode_index_fp8(codes.data(), out);
  for (std::size_t i = 0; i < kIndexDim; ++i) out[i] *= scale;
}

// Rows [count, 128] through one of the quantisers of index keys and queries.
void add_index_error(const float* rows, std::size_t count, void (*quantise)(const float*, float*),
                     SignalToNoise& error) {
  std::array<float, kIndexDim> grid{};
  for (std::size_t r = 0; r < count; ++r) {
    quantise(rows + r * kIndexDim, grid.data());
    error.add({rows + r * kIndexDim, kIndexDim}, grid);
  }
}

std::unique_ptr<IndexKeys> filled_keys(IndexForm form, std::size_t heads, const float* rows,
                                       std::size_t count) {
  auto keys = make_index_keys(form, heads);
  keys->open(0);
  keys->reserve(0, count);
  for (std::size_t j = 0; j < count; ++j) keys->store(0, j, rows + j * kIndexDim);
  return keys;
}

// Share of `exact` that is in `chosen`; both ascend.
double overlap(std::span<const std::int32_t> exact, std::span<const std::int32_t> chosen) {
  std::vector<std::int32_t> both;
  std::ranges::set_intersection(exact, chosen, std::back_inserter(both));
  return static_cast<double>(both.size()) / static_cast<double>(exact.size());
}

}  // namespace

ActivationCollector::ActivationCollector(const Checkpoint& checkpoint, ThreadPool& pool)
    : config_(checkpoint.config()), pool_(pool), layers_(size(config_.layers)) {
  for (int l = 0; l < config_.layers; ++l) {
    Layer& layer = layers_[size(l)];
    layer.routes_by_score = l >= config_.hash_layers;
    layer.sink.resize(size(config_.heads));
    if (!layer.routes_by_score) continue;
    const Tensor& bias = checkpoint.tensor(fmt::format("layers.{}.ffn.gate.bias", l));
    layer.router_bias.resize(size(bias.elements()));
    std::memcpy(layer.router_bias.data(), bias.data.data(), bias.data.size());
  }
}

StepTaps ActivationCollector::taps() {
  StepTaps taps;
  taps.attention = [this](const AttentionStep& step) { see_attention(step); };
  taps.values = [this](std::string_view name, int layer, std::span<const float> values,
                       std::size_t width) { see_values(name, layer, values, width); };
  return taps;
}

void ActivationCollector::see_attention(const AttentionStep& step) {
  Layer& layer = layers_[size(step.layer)];
  const AttentionSegment& segment = step.segments.front();
  const int ratio = config_.ratio(step.layer);
  const std::size_t entries = ratio == 0 ? 0 : completed_entries(segment, ratio).count;
  const std::vector<float> kv = see_rows(step.kv, segment.rows, layer.kv);
  const std::vector<float> compressed = see_rows(step.entries, entries, layer.entries);
  const std::vector<std::size_t> sampled = sample_rows(segment.rows);
  Selections selections;
  if (config_.kind(step.layer) == LayerKind::kSparse) {
    selections = see_indexer(step, entries, sampled, layer);
  }
  see_sinks(step, kv, compressed, sampled, selections, layer);
}

std::vector<float> ActivationCollector::see_rows(const float* rows, std::size_t count, Rows& out) {
  std::vector<float> stored(count * kKvDim);
  for (std::size_t r = 0; r < count; ++r) {
    const float* row = rows + r * kKvDim;
    float* grid = stored.data() + r * kKvDim;
    fake_quantise_kv(row, grid);
    out.range.add({row, kNopeDim}, kKvTile);
    out.error.add({row, kNopeDim}, {grid, kNopeDim});
  }
  return stored;
}

ActivationCollector::Selections ActivationCollector::see_indexer(
    const AttentionStep& step, std::size_t entries, std::span<const std::size_t> sampled,
    Layer& layer) const {
  const std::size_t heads = size(config_.index_heads);
  const std::size_t topk = size(config_.index_topk);
  const std::size_t rows = step.segments.front().rows;
  const auto visible = [](std::size_t row) { return (row + 1) / 4; };
  add_index_error(step.index_keys, entries, fake_quantise_index_fp4, layer.key_fp4);
  add_index_error(step.index_keys, entries, fake_quantise_index_fp8, layer.key_fp8);
  for (const std::size_t row : sampled) {
    const float* queries = step.index_q + row * heads * kIndexDim;
    add_index_error(queries, heads, fake_quantise_index_fp4, layer.query_fp4);
    add_index_error(queries, heads, fake_quantise_index_fp8, layer.query_fp8);
  }
  layer.rows += rows;
  for (std::size_t row = 0; row < rows; ++row) layer.selecting += visible(row) > topk;

  const auto exact = filled_keys(IndexForm::kF32, heads, step.index_keys, entries);
  const auto fp4 = filled_keys(IndexForm::kFp4, heads, step.index_keys, entries);
  const auto fp8 = filled_keys(IndexForm::kFp8, heads, step.index_keys, entries);
  Selections chosen(sampled.size());
  std::vector<std::array<double, 2>> agreement(sampled.size());
  pool_.parallel_for(sampled.size(), [&](std::size_t i, int) {
    const std::size_t row = sampled[i];
    const auto select = [&](const IndexKeys& keys) {
      return select_entries(keys, 0, visible(row), topk, step.index_q + row * heads * kIndexDim,
                            step.index_weights + row * heads);
    };
    chosen[i] = select(*fp4);  // as the published network attends
    if (visible(row) <= topk) return;
    const auto wanted = select(*exact);
    agreement[i] = {overlap(wanted, chosen[i]), overlap(wanted, select(*fp8))};
  });
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    if (visible(sampled[i]) <= topk) continue;
    layer.agreement_fp4.add(agreement[i][0]);
    layer.agreement_fp8.add(agreement[i][1]);
  }
  return chosen;
}

void ActivationCollector::see_sinks(const AttentionStep& step, std::span<const float> kv,
                                    std::span<const float> entries,
                                    std::span<const std::size_t> sampled,
                                    const Selections& selections, Layer& layer) const {
  const std::size_t heads = size(config_.heads);
  const std::size_t window = size(config_.window);
  const int ratio = config_.ratio(step.layer);
  const float scale = 1.0f / std::sqrt(static_cast<float>(kKvDim));
  std::vector<double> share(sampled.size() * heads);
  pool_.parallel_for(sampled.size(), [&](std::size_t i, int) {
    const std::size_t row = sampled[i];
    std::vector<const float*> keys;
    for (std::size_t p = row + 1 - std::min(row + 1, window); p <= row; ++p) {
      keys.push_back(kv.data() + p * kKvDim);
    }
    if (!selections.empty()) {
      for (const std::int32_t j : selections[i]) keys.push_back(entries.data() + size(j) * kKvDim);
    } else if (ratio > 0) {
      const std::size_t visible = (row + 1) / size(ratio);
      for (std::size_t j = 0; j < visible; ++j) keys.push_back(entries.data() + j * kKvDim);
    }
    std::vector<float> scores(keys.size());
    for (std::size_t h = 0; h < heads; ++h) {
      const float* q = step.q + (row * heads + h) * kKvDim;
      for (std::size_t k = 0; k < keys.size(); ++k) scores[k] = dot(q, keys[k], kKvDim) * scale;
      const double top = std::max(*std::ranges::max_element(scores), step.sink[h]);
      const double sink = std::exp(step.sink[h] - top);
      double sum = sink;
      for (const float score : scores) sum += std::exp(score - top);
      share[i * heads + h] = sink / sum;
    }
  });
  for (std::size_t i = 0; i < share.size(); ++i) layer.sink[i % heads].add(share[i]);
}

void ActivationCollector::see_values(std::string_view name, int layer,
                                     std::span<const float> values, std::size_t width) {
  if (layer < 0) return;
  Layer& l = layers_[size(layer)];
  if (name == "ffn_in") see_expert_input(values, width, l.expert_in, l.expert_in_error);
  if (name == "expert_hidden") {
    see_expert_input(values, width, l.expert_hidden, l.expert_hidden_error);
  }
  if (name == "router_logits" && l.routes_by_score) see_router(values, width, l);
}

void ActivationCollector::see_expert_input(std::span<const float> values, std::size_t width,
                                           E4m3Range& range, SignalToNoise& error) const {
  std::vector<float> grid(values.size());
  quantise_activation(
      pool_,
      {.in = values.data(), .out = grid.data(), .rows = values.size() / width, .width = width});
  error.add(values, grid);
  for (std::size_t first = 0; first < values.size(); first += width) {
    range.add(values.subspan(first, width), kActivationGroup);
  }
}

void ActivationCollector::see_router(std::span<const float> logits, std::size_t experts,
                                     Layer& layer) const {
  const std::size_t k = size(config_.experts_per_token);
  if (k >= experts) return;  // nothing is refused
  std::vector<float> scores(experts);
  for (std::size_t first = 0; first < logits.size(); first += experts) {
    for (std::size_t e = 0; e < experts; ++e) {
      scores[e] = router_score(logits[first + e]) + layer.router_bias[e];
    }
    const auto refused = scores.begin() + static_cast<std::ptrdiff_t>(k);
    std::ranges::partial_sort(scores, refused + 1, std::greater());
    layer.router_margin.add(static_cast<double>(*(refused - 1)) - *refused);
  }
}

std::vector<LayerFigures> ActivationCollector::figures() const {
  std::vector<LayerFigures> out(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& l = layers_[i];
    LayerFigures& f = out[i];
    f.fill(std::nan(""));
    const auto rows = [&](Figure first, const Rows& r) {
      const std::array<double, 7> values = {r.range.amax().quantile(0.01),
                                            r.range.amax().quantile(0.5),
                                            r.range.amax().quantile(1),
                                            r.range.over_448(),
                                            r.range.top_binade(),
                                            r.range.below_normal(),
                                            r.error.decibel()};
      std::ranges::copy(values, f.begin() + static_cast<std::ptrdiff_t>(first));
    };
    rows(Figure::kKvAmaxLow, l.kv);
    rows(Figure::kEntryAmaxLow, l.entries);
    at(f, Figure::kIndexKeySnrFp4) = l.key_fp4.decibel();
    at(f, Figure::kIndexKeySnrFp8) = l.key_fp8.decibel();
    at(f, Figure::kIndexQuerySnrFp4) = l.query_fp4.decibel();
    at(f, Figure::kIndexQuerySnrFp8) = l.query_fp8.decibel();
    if (l.rows > 0) {
      at(f, Figure::kSelecting) = static_cast<double>(l.selecting) / static_cast<double>(l.rows);
    }
    at(f, Figure::kAgreementFp4) = l.agreement_fp4.mean();
    at(f, Figure::kAgreementFp8) = l.agreement_fp8.mean();
    at(f, Figure::kExpertInSnr) = l.expert_in_error.decibel();
    at(f, Figure::kExpertInTopBinade) = l.expert_in.top_binade();
    at(f, Figure::kExpertInBelowNormal) = l.expert_in.below_normal();
    at(f, Figure::kExpertHiddenSnr) = l.expert_hidden_error.decibel();
    at(f, Figure::kExpertHiddenTopBinade) = l.expert_hidden.top_binade();
    at(f, Figure::kExpertHiddenBelowNormal) = l.expert_hidden.below_normal();
    at(f, Figure::kRouterMarginLow) = l.router_margin.quantile(0.05);
    at(f, Figure::kRouterMarginMedian) = l.router_margin.quantile(0.5);
    Sample all;
    double most = std::nan("");
    for (const Sample& head : l.sink) {
      all.add(head);
      most = std::fmax(most, head.mean());
    }
    at(f, Figure::kSinkMean) = all.mean();
    at(f, Figure::kSinkMaxHead) = most;
  }
  return out;
}

std::uint64_t ActivationCollector::broken_groups() const {
  std::uint64_t broken = 0;
  for (const Layer& l : layers_) {
    for (const E4m3Range* range : {&l.kv.range, &l.entries.range, &l.expert_in, &l.expert_hidden}) {
      broken += range->broken_groups();
    }
  }
  return broken;
}

}  // namespace cupel
