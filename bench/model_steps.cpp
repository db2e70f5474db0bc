// A whole model of true shapes with random weights in memory: decode steps and prefill.
#include <algorithm>
#include <functional>
#include <memory>

#include "benchmarks.h"
#include "measure.h"
#include "random_matrix.h"
#include "yardstick.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "cupel/base/file.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/random_weights.h"
#include "cupel/kernels/isa.h"
#include "cupel/model/network.h"

namespace cupel::bench {
namespace {

constexpr int kStepTokens = 16;  // decoded by one timed run: each routes to other experts
constexpr std::size_t kChunk = 512;

std::unique_ptr<WeightSource> source(const Settings& s) {
  if (s.load != "random") return std::make_unique<Checkpoint>(s.load);
  std::string json = chosen_layers_config(read_file(s.config), s.config, s.layer_ids);
  if (s.vocabulary > 0) {
    auto config = nlohmann::ordered_json::parse(json);
    config["vocab_size"] = s.vocabulary;
    json = config.dump();
  }
  return std::make_unique<RandomWeights>(std::move(json), s.config, 1);
}

// What one token needs of the weights: bytes as they are stored, multiply-adds of the products.
struct Needs {
  double bytes = 0, layer_macs = 0;
};

Needs needs(const ModelConfig& config) {
  Needs needs;
  const double share =
      static_cast<double>(config.experts_per_token) / static_cast<double>(config.routed_experts);
  const auto add = [&](const ExpectedTensor& t, bool layer) {
    if (t.name == "embed.weight" || t.name.ends_with("tid2eid")) return;
    const auto storages = legal_storages(t);
    const double part = t.encoding == Encoding::kExpert ? share : 1;
    needs.bytes += part * static_cast<double>(storages.front().bytes());
    if (!layer || t.shape.size() < 2 || t.role.ends_with(" ape")) return;
    needs.layer_macs += part * static_cast<double>(t.shape[0] * t.shape[1]);
  };
  visit_trunk_tensors(config, [&](const ExpectedTensor& t) { add(t, false); });
  for (int l = 0; l < config.layers; ++l) {
    visit_layer_tensors(config, l, [&](const ExpectedTensor& t) { add(t, true); });
  }
  return needs;
}

// Multiply-adds of attention and index scores over a prompt.
double attention_macs(const ModelConfig& config, std::size_t tokens) {
  double macs = 0;
  for (int l = 0; l < config.layers; ++l) {
    const auto ratio = static_cast<std::size_t>(config.ratio(l));
    for (std::size_t p = 0; p < tokens; ++p) {
      std::size_t keys = std::min<std::size_t>(p + 1, static_cast<std::size_t>(config.window));
      if (ratio > 0) {
        const std::size_t visible = (p + 1) / ratio;
        const auto topk = static_cast<std::size_t>(config.index_topk);
        keys += ratio == 4 ? std::min(visible, topk) : visible;
        if (ratio == 4 && visible > topk) {
          macs += static_cast<double>(visible) * config.index_heads * config.index_head_dim;
        }
      }
      macs += 2.0 * static_cast<double>(keys) * config.heads * config.head_dim;
    }
  }
  return macs;
}

// The most memory this process has held resident, mapped files included, in bytes.
double peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void prefill_prompt(Network& network, SequenceState& state, std::size_t tokens) {
  std::vector<std::int32_t> ids(kChunk);
  for (std::size_t begin = 0; begin < tokens; begin += kChunk) {
    ids.resize(std::min(kChunk, tokens - begin));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>((begin + i) * 7919 %
                                         static_cast<std::size_t>(network.config().vocab_size));
    }
    const SegmentInput input{.state = &state, .ids = ids};
    network.forward({&input, 1}, {});
  }
}

}  // namespace

void model(const Settings& s) {
  const auto weights = source(s);
  const ModelConfig& config = weights->config();
  const double before = peak_memory();
  NetworkOptions options;
  options.weights = parse_weights_form(s.weights);
  Network network(*weights, options, *s.executor);
  const double peak = peak_memory();
  ReadBandwidth memory(*s.pool);
  set_sgemm_threads(s.pool->threads());
  fmt::print(
      "{} layers, vocabulary {}, {:.2f} GB of weights held ({}), {} threads, {}; OpenBLAS core "
      "{}\n",
      config.layers, config.vocab_size, static_cast<double>(network.weight_bytes()) * 1e-9,
      s.weights, s.pool->threads(), active_isa(), sgemm_core());

  fmt::print(
      "peak memory after loading: {:.2f} GB, {:.1f}% of the weights, {:.2f} GB of it there "
      "before\n",
      peak * 1e-9, 100 * peak / static_cast<double>(network.weight_bytes()), before * 1e-9);
  const Needs per_token = needs(config);
  SequenceState state = network.open();
  prefill_prompt(network, state, 256);
  std::int32_t id = 11;
  const std::function<void()> decode[] = {
      [&] {
        for (int i = 0; i < kStepTokens; ++i) {
          id = static_cast<std::int32_t>((id * 31L + 7) % config.vocab_size);
          const SegmentInput input{.state = &state, .ids = {&id, 1}};
          const std::size_t row[] = {0};
          network.forward({&input, 1}, row);
        }
      },
      [&] { memory.read(); }};
  const auto step = alternate(decode, s.repeats);
  network.close(state);
  const double rate = kStepTokens * per_token.bytes / step[0] * 1e-9;
  const double sum = static_cast<double>(memory.bytes()) / step[1] * 1e-9;
  fmt::print(
      "decode step at context 256: {:.1f} MB of weights a token; {:.1f} GB/s, plain sum "
      "{:.1f} GB/s: {:.0f}% of the bound\n",
      per_token.bytes * 1e-6, rate, sum, 100 * rate / sum);

  constexpr std::size_t kSide = 2048;
  const auto x = random_floats(512 * kSide), w = random_floats(kSide * kSide);
  std::vector<float> out(512 * kSide);
  const auto tokens = static_cast<std::size_t>(s.tokens);
  const std::function<void()> prompt[] = {
      [&] {
        SequenceState fresh = network.open();
        prefill_prompt(network, fresh, tokens);
        network.close(fresh);
      },
      [&] { sgemm(512, kSide, kSide, x.data(), w.data(), out.data()); }};
  const auto prefill = alternate(prompt, std::min(s.repeats, 3));
  const double macs =
      static_cast<double>(tokens) * per_token.layer_macs + attention_macs(config, tokens);
  const double prefill_rate = macs / prefill[0] * 1e-9;
  const double sgemm_rate = 512.0 * kSide * kSide / prefill[1] * 1e-9;
  fmt::print(
      "prefill of {} tokens in steps of {}: {:.2f} T multiply-adds; {:.1f} G/s, sgemm {:.1f} "
      "G/s: {:.0f}% of the bound\n",
      tokens, kChunk, macs * 1e-12, prefill_rate, sgemm_rate, 100 * prefill_rate / sgemm_rate);
}

}  // namespace cupel::bench
