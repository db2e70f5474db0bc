// Random weights: what is written equals what is generated, runs, and does not depend on how it is
// read.
#include "cupel/checkpoint/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "support/same_bits.h"
#include "support/temporary_folder.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/checkpoint_view.h"
#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

using test::same_bits;
using test::TemporaryFolder;

// The published configuration, with sizes that a test can hold.
std::string small_config() {
  auto config =
      nlohmann::ordered_json::parse(read_file(CUPEL_SOURCE_DIR "/data/v4-flash/config.0731.json"));
  config["hidden_size"] = 256;
  config["q_lora_rank"] = 128;
  config["o_lora_rank"] = 128;
  config["num_attention_heads"] = 4;
  config["o_groups"] = 2;
  config["moe_intermediate_size"] = 128;
  config["n_routed_experts"] = 8;
  config["num_experts_per_tok"] = 3;
  config["index_n_heads"] = 4;
  config["index_topk"] = 8;
  config["vocab_size"] = 900;
  config["dspark_noise_token_id"] = 899;
  return config.dump();
}

RandomWeights random_weights(const std::vector<int>& layers, std::uint64_t seed = 1) {
  return {chosen_layers_config(small_config(), "small", layers), "small", seed};
}

std::vector<float> logits(const WeightSource& source, WeightsForm form = WeightsForm::kRepack,
                          int threads = 2) {
  CpuExecutor executor(threads);
  Network network(source, {.weights = form}, executor);
  std::vector<std::int32_t> ids(140);
  std::iota(ids.begin(), ids.end(), 7);
  SequenceState state = network.open();
  const SegmentInput input{.state = &state, .ids = ids};
  const std::size_t rows[] = {0, 77, 139};
  std::vector<float> out = network.forward({&input, 1}, rows);
  const std::int32_t next[] = {5};
  const SegmentInput one{.state = &state, .ids = next};
  const std::size_t first[] = {0};
  const auto more = network.forward({&one, 1}, first);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(RandomWeights, LayersKeepTheirRatioAndTheirRouting) {
  const ModelConfig config = random_weights({2, 3, 42}).config();
  EXPECT_EQ(config.compress_ratios, (std::vector<int>{4, 128, 4}));
  EXPECT_EQ(config.hash_layers, 1);
  EXPECT_EQ(config.drafter, DrafterKind::kNone);
  for (const auto& wrong : {std::vector<int>{}, {3, 2}, {2, 2}, {-1}, {43}}) {
    EXPECT_THROW(chosen_layers_config(small_config(), "small", wrong), InputError);
  }
}

TEST(RandomWeights, WrittenAndInMemoryGiveTheSameBits) {
  const TemporaryFolder folder;
  const RandomWeights weights = random_weights({1, 2, 3});
  const auto path = folder.path() / "model";
  const std::uint64_t bytes = write_random_checkpoint(
      weights, path, {.tokenizer = CUPEL_SOURCE_DIR "/models/tiny-v4-0731/tokenizer.json"});
  const Checkpoint checkpoint(path);
  std::uint64_t stored = 0;
  for (const SafetensorsFile& shard : checkpoint.shards()) {
    for (const Tensor& tensor : shard.tensors()) {
      stored += tensor.data.size();
      const LentBytes whole = weights.read(weights.tensor(tensor.name), 0, tensor.data.size());
      EXPECT_TRUE(std::ranges::equal(whole.bytes(), tensor.data)) << tensor.name;
    }
  }
  EXPECT_EQ(stored, bytes);

  const std::vector<float> in_memory = logits(weights);
  EXPECT_TRUE(std::ranges::all_of(in_memory, [](float x) { return std::isfinite(x); }));
  const auto [low, high] = std::ranges::minmax(in_memory);
  EXPECT_GT(high - low, 0.5f);
  EXPECT_LT(std::max(high, -low), 50.0f);
  EXPECT_TRUE(same_bits(logits(checkpoint), in_memory));
  EXPECT_TRUE(same_bits(logits(checkpoint, WeightsForm::kMap), in_memory));
  EXPECT_TRUE(same_bits(logits(checkpoint, WeightsForm::kMap, 1), in_memory));
  EXPECT_FALSE(same_bits(logits(random_weights({1, 2, 3}, 2)), in_memory));
}

// Any cut of a tensor into pieces gives its bytes.
TEST(RandomWeights, PiecesJoin) {
  const RandomWeights weights = random_weights({2});
  for (const auto& shard : weights.shards()) {
    for (const Tensor& tensor : shard) {
      if (tensor.bytes() < 9000) continue;
      const LentBytes whole = weights.read(tensor, 0, tensor.bytes());
      const std::size_t unit = dtype_size(tensor.dtype);
      const std::size_t begin = 4100 / unit * unit, count = 4200 / unit * unit;
      const LentBytes piece = weights.read(tensor, begin, count);
      EXPECT_TRUE(std::ranges::equal(piece.bytes(), whole.bytes().subspan(begin, count)))
          << tensor.name;
    }
  }
}

TEST(RandomWeights, ATokensExpertsAreDistinct) {
  const RandomWeights weights = random_weights({2});
  const Tensor& routes = weights.tensor("layers.0.ffn.gate.tid2eid");
  const LentBytes lent = weights.read(routes, 0, routes.bytes());
  std::vector<std::int64_t> ids(routes.bytes() / sizeof(std::int64_t));
  std::memcpy(ids.data(), lent.bytes().data(), routes.bytes());
  for (std::size_t t = 0; t < ids.size(); t += 3) {
    EXPECT_TRUE(ids[t] != ids[t + 1] && ids[t] != ids[t + 2] && ids[t + 1] != ids[t + 2]);
    for (std::size_t i = t; i < t + 3; ++i) EXPECT_TRUE(ids[i] >= 0 && ids[i] < 8);
  }
}

TEST(RandomWeights, HeadersOnly) {
  const TemporaryFolder folder;
  const RandomWeights weights = random_weights({2, 3});
  const auto path = folder.path() / "model";
  const std::uint64_t bytes = write_random_checkpoint(weights, path, {.headers_only = true});
  const CheckpointView view(path, true);
  EXPECT_EQ(view.bytes(), bytes);
  EXPECT_TRUE(view.faults().empty());
  EXPECT_LT(std::filesystem::file_size(path / "model-00002-of-00004.safetensors"), 100000u);
  EXPECT_THROW(Checkpoint{path}, InputError);
  // Nothing is overwritten.
  EXPECT_THROW(write_random_checkpoint(weights, path, {}), InputError);
}

}  // namespace
}  // namespace cupel
