#include "cupel/checkpoint/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/hash.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/formats/bf16.h"
#include "cupel/formats/e8m0.h"

namespace cupel {
namespace {

// Values are made in blocks of this many bytes, each from its own stream.
constexpr std::size_t kBlock = 4096;

// The root mean square of the sixteen e2m1 codes, and of the 254 finite e4m3 codes.
constexpr double kRmsE2m1 = 2.93;
constexpr double kRmsE4m3 = 100;

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// SplitMix64: any place of the stream is one function away.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

 private:
  std::uint64_t state_;
};

void fill_words(Stream& stream, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = stream.next();
    std::memcpy(out.data() + i, &word, std::min(sizeof word, out.size() - i));
  }
}

// The NaN code becomes the largest number of its sign.
void clear_e4m3_nan(std::span<std::byte> codes) {
  for (std::byte& c : codes) {
    const auto code = std::to_integer<unsigned>(c);
    c = static_cast<std::byte>(code - static_cast<unsigned>((code & 0x7fu) == 0x7fu));
  }
}

float uniform(std::uint32_t bits24, float centre, float spread) {
  return centre + spread * (static_cast<float>(bits24) * 0x1p-23f - 1.0f);
}

void fill_bf16(Stream& stream, float centre, float spread, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += 4 * sizeof(std::uint16_t)) {
    const std::uint64_t word = stream.next();
    std::uint16_t values[4];
    for (std::size_t j = 0; j < 4; ++j) {
      const auto bits = static_cast<std::uint32_t>(word >> (16 * j) & 0xffffu) << 8;
      values[j] = bf16_from_float(uniform(bits, centre, spread));
    }
    std::memcpy(out.data() + i, values, std::min(sizeof values, out.size() - i));
  }
}

void fill_f32(Stream& stream, float centre, float spread, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += sizeof(float)) {
    const float value = uniform(static_cast<std::uint32_t>(stream.next() >> 40), centre, spread);
    std::memcpy(out.data() + i, &value, sizeof value);
  }
}

// Uniform with this standard deviation.
float spread_of(double deviation) {
  return static_cast<float>(std::sqrt(3.0) * deviation);
}

}  // namespace

std::string chosen_layers_config(std::string_view json, std::string_view where,
                                 std::span<const int> layer_ids) {
  const ModelConfig full = parse_config(json, where);
  std::vector<int> ratios;
  int hash_layers = 0;
  for (std::size_t i = 0; i < layer_ids.size(); ++i) {
    const int id = layer_ids[i];
    if (id < 0 || id >= full.layers || (i > 0 && id <= layer_ids[i - 1])) {
      throw InputError("layer ids", fmt::format("ascending, in [0, {})", full.layers),
                       fmt::format("{} at place {}", id, i));
    }
    ratios.push_back(full.ratio(id));
    hash_layers += id < full.hash_layers ? 1 : 0;
  }
  if (ratios.empty()) throw InputError("layer ids", "at least one", "none");
  auto config = nlohmann::ordered_json::parse(json);
  config["num_hidden_layers"] = ratios.size();
  config["num_hash_layers"] = hash_layers;
  config["compress_ratios"] = ratios;
  config["num_nextn_predict_layers"] = 0;
  for (const char* field : {"dspark_block_size", "dspark_noise_token_id", "dspark_target_layer_ids",
                            "dspark_markov_rank"}) {
    config.erase(field);
  }
  return config.dump(2) + "\n";
}

RandomWeights::RandomWeights(std::string config_json, std::string_view where, std::uint64_t seed)
    : config_json_(std::move(config_json)),
      config_(parse_config(config_json_, where)),
      seed_(seed),
      fingerprint_(hash_hex(fmt::format("random {}\n{}", seed, config_json_))) {
  if (config_.drafter != DrafterKind::kNone) {
    throw InputError(std::string(where), "a configuration without a drafter", "one with a drafter");
  }
  const auto layers = static_cast<std::size_t>(config_.layers);
  shards_.resize(layers + 2);
  visit_trunk_tensors(config_, [&](const ExpectedTensor& expected) {
    add(expected, expected.name == "embed.weight" ? shards_.front() : shards_.back());
  });
  for (std::size_t l = 0; l < layers; ++l) {
    visit_layer_tensors(config_, static_cast<int>(l),
                        [&](const ExpectedTensor& expected) { add(expected, shards_[l + 1]); });
  }
  for (const auto& shard : shards_) {
    for (const Tensor& tensor : shard) by_name_.emplace(tensor.name, &tensor);
  }
}

void RandomWeights::add(const ExpectedTensor& expected, std::vector<Tensor>& shard) {
  const auto storages = legal_storages(expected);
  const std::size_t form =
      expected.encoding == Encoding::kExpert ? static_cast<std::size_t>(config_.expert_dtype) : 0;
  const Storage& storage = storages[form];
  Tensor weight;
  weight.name = expected.name;
  weight.dtype = storage.dtype;
  weight.shape = storage.shape;
  weight.file = "random weights";
  recipes_.emplace(weight.name, recipe(expected, weight.dtype));
  if (!storage.scale_shape.empty()) {
    Tensor scale = weight;
    scale.name = scale_name(expected.name);
    scale.dtype = Dtype::kF8E8M0;
    scale.shape = storage.scale_shape;
    Recipe scales = recipe(expected, weight.dtype);
    scales.kind = Recipe::Kind::kE8m0;
    recipes_.emplace(scale.name, scales);
    shard.push_back(std::move(scale));
  }
  shard.push_back(std::move(weight));
}

// Matrices have the deviation 1 / sqrt(inputs), so that a product keeps the deviation of its input;
// what is added to their results has about the same size.
RandomWeights::Recipe RandomWeights::recipe(const ExpectedTensor& expected, Dtype dtype) {
  using Kind = Recipe::Kind;
  const double deviation = 1.0 / std::sqrt(static_cast<double>(expected.shape.back()));
  const auto exponent = [&](double rms) {
    return static_cast<int>(std::lround(std::log2(deviation / rms)));
  };
  switch (dtype) {
    case Dtype::kI8:
      return {.kind = Kind::kFp4, .exponent = exponent(kRmsE2m1)};
    case Dtype::kF8E4M3:
      return {.kind = Kind::kFp8, .exponent = exponent(kRmsE4m3)};
    case Dtype::kI64:
      return {.kind = Kind::kRoutes};
    default:
      break;
  }
  const Kind kind = dtype == Dtype::kBF16 ? Kind::kBf16 : Kind::kF32;
  const std::string_view role = expected.role;
  if (role.ends_with("norm")) return {.kind = kind, .centre = 1, .spread = 0.5f};
  if (role.ends_with(" scale")) return {.kind = kind, .centre = 0.5f, .spread = 0.25f};
  if (role == "router bias") return {.kind = kind, .spread = 0.1f};
  if (role == "embedding") return {.kind = kind, .spread = spread_of(1)};
  for (const std::string_view end : {" base", " ape", " sink"}) {
    if (role.ends_with(end)) return {.kind = kind, .spread = 1};
  }
  return {.kind = kind, .spread = spread_of(deviation)};
}

const Tensor& RandomWeights::tensor(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    throw InputError(tensor_where("random weights", name), "such a tensor", "none");
  }
  return *found->second;
}

// The experts of a token: evenly spaced from a random one on, so none comes twice.
void RandomWeights::fill_routes(std::uint64_t seed, std::size_t begin,
                                std::span<std::byte> out) const {
  const auto experts = static_cast<std::uint64_t>(config_.routed_experts);
  const auto k = static_cast<std::uint64_t>(config_.experts_per_token);
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::int64_t)) {
    const std::uint64_t element = (begin + i) / sizeof(std::int64_t);
    const std::uint64_t random = Stream(seed + element / k).next();
    const std::uint64_t step = 1 + (random >> 32) % (experts / k);
    const auto expert =
        static_cast<std::int64_t>((random % experts + element % k * step) % experts);
    std::memcpy(out.data() + i, &expert, sizeof expert);
  }
}

LentBytes RandomWeights::read(const Tensor& tensor, std::size_t begin, std::size_t count) const {
  const Recipe& recipe = recipes_.at(tensor.name);
  const std::size_t first = begin / kBlock * kBlock;
  const std::size_t end = std::min(tensor.bytes(), (begin + count + kBlock - 1) / kBlock * kBlock);
  std::vector<std::byte> bytes(end - first);
  std::uint64_t seed = mix(seed_ + 1);
  for (const char c : tensor.name) seed = mix(seed ^ static_cast<unsigned char>(c));
  for (std::size_t at = first; at < end; at += kBlock) {
    const auto out = std::span(bytes).subspan(at - first, std::min(kBlock, end - at));
    Stream stream(mix(seed + at / kBlock + 1));
    switch (recipe.kind) {
      case Recipe::Kind::kFp4:
        fill_words(stream, out);
        break;
      case Recipe::Kind::kFp8:
        fill_words(stream, out);
        clear_e4m3_nan(out);
        break;
      case Recipe::Kind::kE8m0:
        fill_words(stream, out);
        for (std::byte& b : out) {
          const int below = std::to_integer<int>(b) & 1;
          b = static_cast<std::byte>(kE8m0Bias + recipe.exponent - below);
        }
        break;
      case Recipe::Kind::kBf16:
        fill_bf16(stream, recipe.centre, recipe.spread, out);
        break;
      case Recipe::Kind::kF32:
        fill_f32(stream, recipe.centre, recipe.spread, out);
        break;
      case Recipe::Kind::kRoutes:
        fill_routes(seed, at, out);
        break;
    }
  }
  bytes.resize(begin - first + count);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin - first));
  return LentBytes::of_buffer(std::move(bytes));
}

}  // namespace cupel
