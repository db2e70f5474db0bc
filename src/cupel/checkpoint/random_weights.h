// Random weights of true shapes, for tests and benchmarks: chosen layers of a published
// configuration, with scales that keep activations in range.
//
// A value is a function of the seed, the tensor's name and its place, whatever is asked for first
// and in which pieces.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cupel/checkpoint/catalogue.h"
#include "cupel/checkpoint/weight_source.h"

namespace cupel {

// config.json of the model that consists of those layers of the model of `json`, in that order,
// without a drafter. A layer keeps its ratio and whether it routes by token id. Throws InputError:
// `json` is no configuration, an id is not of a layer, or the ids do not ascend.
std::string chosen_layers_config(std::string_view json, std::string_view where,
                                 std::span<const int> layer_ids);

class RandomWeights final : public WeightSource {
 public:
  // Of a configuration without a drafter. `where` is named in errors.
  RandomWeights(std::string config_json, std::string_view where, std::uint64_t seed);

  const ModelConfig& config() const override { return config_; }
  const std::string& fingerprint() const override { return fingerprint_; }
  const Tensor& tensor(std::string_view name) const override;
  LentBytes read(const Tensor& tensor, std::size_t begin, std::size_t count) const override;
  std::shared_ptr<const void> map() const override { return nullptr; }

  const std::string& config_json() const { return config_json_; }
  // The shards a writer makes: embedding, one a layer, the rest. Tensors in order.
  const std::vector<std::vector<Tensor>>& shards() const { return shards_; }

 private:
  // How the bytes of a tensor come about.
  struct Recipe {
    enum class Kind { kFp4, kFp8, kE8m0, kBf16, kF32, kRoutes } kind = Kind::kF32;
    float centre = 0;  // kBf16, kF32: uniform in centre +- spread
    float spread = 0;
    int exponent = 0;  // kE8m0: this one or the one below, with equal chance
  };

  static Recipe recipe(const ExpectedTensor& expected, Dtype dtype);
  void add(const ExpectedTensor& expected, std::vector<Tensor>& shard);
  void fill_routes(std::uint64_t seed, std::size_t begin, std::span<std::byte> out) const;

  std::string config_json_;
  ModelConfig config_;
  std::uint64_t seed_;
  std::string fingerprint_;
  std::vector<std::vector<Tensor>> shards_;
  std::unordered_map<std::string_view, const Tensor*> by_name_;
  std::unordered_map<std::string, Recipe> recipes_;
};

struct WriteRandomOptions {
  std::filesystem::path tokenizer = {};  // copied as tokenizer.json; empty: none is written
  bool headers_only = false;             // shards end after their headers
  int threads = 0;
};

// A checkpoint folder with these weights; it must not exist. Returns the bytes of all tensors.
// Throws InputError if the folder cannot be made, InfrastructureError where the system cannot
// write.
std::uint64_t write_random_checkpoint(const RandomWeights& weights,
                                      const std::filesystem::path& folder,
                                      const WriteRandomOptions& options);

}  // namespace cupel
