// Broken variants of the bundled checkpoints: each ends in an error that names file, tensor, what
// was expected and what was found.
#include <cmath>
#include <cstring>

#include "support/expect_error.h"
#include "support/tiny_checkpoint.h"
#include <gtest/gtest.h>

#include "cupel/checkpoint/checkpoint.h"

namespace cupel {
namespace {

using nlohmann::json;
using test::expect_input_error;
using test::StoredTensor;
using test::TinyCheckpoint;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kFirst = "model-00001-of-00003.safetensors";
constexpr const char* kSecond = "model-00002-of-00003.safetensors";

class CheckpointFault : public testing::Test {
 protected:
  void expect_error(const std::vector<std::string>& parts) {
    expect_input_error([&] { const Checkpoint checkpoint(tiny_.path()); }, parts);
  }
  std::string path(const std::string& file) const { return (tiny_.path() / file).string(); }

  TinyCheckpoint tiny_{"tiny-v4-preview"};
};

StoredTensor small(const std::string& name) {
  return {name, Dtype::kBF16, {1}, std::vector<std::byte>(2)};
}

TEST(CheckpointFolder, MissingOrEmpty) {
  expect_input_error([] { const Checkpoint checkpoint("/nonexistent"); },
                     {"/nonexistent", "a checkpoint folder"});
  const test::TemporaryFolder empty;
  expect_input_error([&] { const Checkpoint checkpoint(empty.path()); },
                     {(empty.path() / "config.json").string()});
}

TEST_F(CheckpointFault, NeitherIndexNorSingleFile) {
  std::filesystem::remove(tiny_.path() / kIndex);
  expect_error({tiny_.path().string(), kIndex, "or model.safetensors", "neither"});
}

TEST_F(CheckpointFault, IndexText) {
  tiny_.replace(kIndex, R"({"weight_map": {"a": "b.safetensors")");
  expect_error({path(kIndex), "byte offset", "valid JSON"});
  tiny_.replace(kIndex, "[]");
  expect_error({path(kIndex), "an object", "found []"});
  tiny_.replace(kIndex, "{}");
  expect_error({path(kIndex), "field weight_map", "no such field"});
  tiny_.replace(kIndex, R"({"weight_map": 3})");
  expect_error({path(kIndex), "field weight_map", "an object", "found 3"});
  tiny_.replace(kIndex, R"({"weight_map": {}})");
  expect_error({path(kIndex), "field weight_map", "at least one"});
  tiny_.replace(kIndex, R"({"weight_map": {"a": 1}})");
  expect_error({path(kIndex), R"(tensor "a")", "the name of a shard", "found 1"});
  tiny_.replace(kIndex, R"({"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}})");
  expect_error({path(kIndex), R"(tensor "a")", "one such tensor", "two"});
  tiny_.replace(kIndex, R"({"weight_map": {"a": "../x.safetensors"}})");
  expect_error({path(kIndex), R"(tensor "a")", "same folder", "../x.safetensors"});
  tiny_.replace(kIndex,
                R"({"weight_map": {"a": ")" + std::string(5000, 'x') + R"(.safetensors"}})");
  expect_error({R"(tensor "a")", "no such file"});
}

TEST_F(CheckpointFault, MissingShard) {
  std::filesystem::remove(tiny_.path() / kSecond);
  expect_error({path(kSecond), path(kIndex), "no such file"});
}

TEST_F(CheckpointFault, TruncatedShard) {
  std::string bytes = read_file(tiny_.path() / kSecond);
  bytes.pop_back();
  tiny_.replace(kSecond, bytes);
  expect_error({path(kSecond), "tensor \"", "data_offsets", "at most"});
}

TEST_F(CheckpointFault, StrayShard) {
  TinyCheckpoint::write(tiny_.path() / "extra.safetensors", {small("extra")});
  expect_error({path("extra.safetensors"), path(kIndex)});
}

TEST_F(CheckpointFault, InIndexButNotInShard) {
  tiny_.edit_shard(kFirst, [](auto& tensors) {
    std::erase_if(tensors, [](const auto& t) { return t.name == "embed.weight"; });
  });
  expect_error({path(kIndex), R"(tensor "embed.weight")", kFirst, "no such tensor"});
}

TEST_F(CheckpointFault, InShardButNotInIndex) {
  tiny_.edit_index([](json& index) { index["weight_map"].erase("embed.weight"); });
  expect_error({path(kFirst), R"(tensor "embed.weight")", path(kIndex), "found none"});
}

TEST_F(CheckpointFault, InAnotherShardThanTheIndexSays) {
  tiny_.edit_index([](json& index) { index["weight_map"]["embed.weight"] = kSecond; });
  expect_error({path(kFirst), R"(tensor "embed.weight")", std::string("it in \"") + kSecond,
                std::string("found it in \"") + kFirst});
}

TEST_F(CheckpointFault, InTwoShards) {
  tiny_.edit_shard(kSecond, [](auto& tensors) { tensors.push_back(small("embed.weight")); });
  expect_error({path(kSecond), R"(tensor "embed.weight")", "one such tensor", path(kFirst)});
}

TEST_F(CheckpointFault, TotalSize) {
  tiny_.edit_index([](json& index) { index["metadata"]["total_size"] = 17; });
  expect_error({path(kIndex), "field metadata.total_size", "15959008", "found 17"});
  tiny_.edit_index([](json& index) { index["metadata"]["total_size"] = "17"; });
  expect_error({path(kIndex), "field metadata.total_size", "a number of bytes"});
  tiny_.edit_index([](json& index) { index["metadata"]["total_size"] = 15959008.0; });
  EXPECT_NO_THROW(Checkpoint(tiny_.path()));
}

TEST_F(CheckpointFault, MissingTensor) {
  tiny_.remove_tensor("layers.3.attn.compressor.ape");
  expect_error({path(kIndex), R"(tensor "layers.3.attn.compressor.ape")", "F32 [128, 512]",
                "compressor ape", "found no such tensor"});
}

TEST_F(CheckpointFault, MissingScale) {
  tiny_.remove_tensor("layers.2.ffn.experts.7.w2.scale");
  expect_error({R"(tensor "layers.2.ffn.experts.7.w2.scale")", "F8_E8M0 or F32 [256, 4]",
                "I8 tensor \"layers.2.ffn.experts.7.w2.weight\"", "found no such tensor"});
}

TEST_F(CheckpointFault, ScaleShapeAndDtype) {
  tiny_.edit_tensor("layers.0.attn.wkv.scale", [](StoredTensor& t) { t.shape = {2, 4}; });
  expect_error({path(kFirst), R"(tensor "layers.0.attn.wkv.scale": shape)",
                "expected [4, 2] for F8_E4M3 [512, 256]", "found [2, 4]"});
  tiny_.edit_tensor("layers.0.attn.wkv.scale", [](StoredTensor& t) {
    t.shape = {4, 2};
    t.dtype = Dtype::kU8;
  });
  expect_error({R"(tensor "layers.0.attn.wkv.scale": dtype)", "F8_E8M0 or F32", "found U8"});
}

TEST_F(CheckpointFault, WrongShape) {
  tiny_.edit_tensor("layers.0.attn_norm.weight", [](StoredTensor& t) { t.shape = {1, 256}; });
  expect_error({path(kFirst), R"(tensor "layers.0.attn_norm.weight": shape)",
                "expected [256] for BF16 (attention norm)", "found [1, 256]"});
}

TEST_F(CheckpointFault, ConfigurationOfAnotherSize) {
  tiny_.edit_config([](json& config) { config["vocab_size"] = 1024; });
  expect_error({R"(tensor "embed.weight": shape)", "[1024, 256]", "found [768, 256]"});
}

TEST_F(CheckpointFault, DenseLinearAsBf16) {
  tiny_.edit_tensor("layers.0.attn.wq_a.weight", [](StoredTensor& tensor) {
    tensor.dtype = Dtype::kBF16;
    tensor.data.resize(2 * tensor.data.size());
  });
  expect_error({R"(tensor "layers.0.attn.wq_a.weight": dtype)", "expected F8_E4M3", "found BF16"});
}

TEST_F(CheckpointFault, ScaleBesideBf16WoA) {
  tiny_.edit_tensor("layers.0.attn.wo_a.weight", [](StoredTensor& tensor) {
    tensor.dtype = Dtype::kBF16;
    tensor.data.resize(2 * tensor.data.size());
  });
  expect_error({R"(tensor "layers.0.attn.wo_a.scale")", "no use for it"});
}

TEST_F(CheckpointFault, ExpertsOfTwoKinds) {
  const auto change = [](StoredTensor& t) {
    t.dtype = Dtype::kF8E4M3;
    t.shape = {128, 256};
    t.data.resize(128L * 256);
  };
  tiny_.edit_tensor("layers.4.ffn.experts.3.w3.weight", change);
  expect_error({R"(tensor "layers.4.ffn.experts.3.w3.weight": dtype)", "expected I8",
                "config.json: field expert_dtype", "found F8_E4M3"});
  tiny_.edit_config([](json& config) { config.erase("expert_dtype"); });
  expect_error({R"(tensor "layers.4.ffn.experts.3.w3.weight": dtype)", "expected I8",
                "first expert of layer 0", "found F8_E4M3"});
}

TEST_F(CheckpointFault, StatedExpertDtypeIsNotTheStoredOne) {
  tiny_.edit_config([](json& config) { config["expert_dtype"] = "fp8"; });
  expect_error({R"(tensor "layers.0.ffn.experts.0.w1.weight": dtype)", "expected F8_E4M3",
                "expert_dtype", "found I8"});
}

TEST_F(CheckpointFault, NanScale) {
  const std::string name = "layers.1.ffn.experts.2.w1.scale";
  tiny_.edit_tensor(name, [](StoredTensor& t) { t.data[1000] = std::byte{255}; });
  std::uint64_t begin = 0;
  const SafetensorsFile shard(tiny_.path() / tiny_.shard_of(name));
  for (const Tensor& tensor : shard.tensors()) {
    if (tensor.name == name) begin = tensor.begin;
  }
  expect_error({shard.path().string(), "tensor \"" + name + "\"",
                "byte offset " + std::to_string(begin + 1000), "0 to 254", "found 255"});
}

TEST_F(CheckpointFault, F32ScaleNotFinite) {
  for (const float bad : {std::nanf(""), INFINITY, -1.0F}) {
    tiny_.edit_tensor("layers.0.attn.wq_a.scale", [&](StoredTensor& t) {
      t.dtype = Dtype::kF32;
      const float values[] = {1.0F, bad};
      t.data.resize(sizeof(values));
      std::memcpy(t.data.data(), values, sizeof(values));
    });
    expect_error({R"(tensor "layers.0.attn.wq_a.scale")", "byte offset", "a finite scale"});
  }
}

TEST_F(CheckpointFault, ExpertIdOutOfRange) {
  for (const std::int64_t bad : {std::int64_t{16}, std::int64_t{-1}, std::int64_t{1} << 32}) {
    tiny_.edit_tensor("layers.1.ffn.gate.tid2eid", [&](StoredTensor& t) {
      std::memcpy(t.data.data() + 8L * (4 * 700 + 3), &bad, sizeof(bad));
    });
    expect_error({R"(tensor "layers.1.ffn.gate.tid2eid")", "byte offset",
                  "from 0 to 15 for token 700", "found " + std::to_string(bad)});
  }
}

TEST_F(CheckpointFault, UnknownTensor) {
  tiny_.add_tensor(small("layers.0.attn.extra.weight"));
  expect_error({path(kFirst), R"(tensor "layers.0.attn.extra.weight")", "config.json calls for",
                "no use for it"});
}

TEST_F(CheckpointFault, TensorOfALayerBeyondTheLast) {
  tiny_.add_tensor(small("layers.5.attn_norm.weight"));
  expect_error({R"(tensor "layers.5.attn_norm.weight")", "no use for it"});
}

TEST_F(CheckpointFault, UnknownDrafterTensor) {
  for (const char* name : {"mtp.0.extra", "mtp.x", "mtp.", "mtp.-1.norm.weight"}) {
    tiny_.add_tensor(small(name));
    expect_error({"tensor \"" + std::string(name) + "\"", "no use for it"});
    tiny_.remove_tensor(name);
  }
}

TEST_F(CheckpointFault, DrafterStages) {
  tiny_.add_tensor(small("mtp.2.norm.weight"));
  expect_error({path(kIndex), "mtp.2", "without a gap"});
  tiny_.remove_tensor("mtp.2.norm.weight");
  tiny_.add_tensor(small("mtp.1.norm.weight"));
  expect_error({path(kIndex), "mtp.1", "num_nextn_predict_layers", "found 2"});
}

TEST_F(CheckpointFault, DrafterShape) {
  tiny_.edit_tensor("mtp.0.enorm.weight", [](StoredTensor& t) { t.shape = {256, 1}; });
  expect_error({R"(tensor "mtp.0.enorm.weight": shape)", "[256]", "found [256, 1]"});
}

TEST_F(CheckpointFault, DrafterScaleAlone) {
  tiny_.remove_tensor("mtp.0.e_proj.weight");
  expect_error({R"(tensor "mtp.0.e_proj.scale")", R"("mtp.0.e_proj.weight")", "no such tensor"});
}

TEST_F(CheckpointFault, DrafterThatTheConfigurationLacks) {
  tiny_.edit_config([](json& config) { config["num_nextn_predict_layers"] = 0; });
  expect_error({"tensor \"mtp.0.", "a drafter, which config.json does not have"});
}

TEST(CheckpointFaultDspark, MtpNamesAreNotDsparkNames) {
  TinyCheckpoint tiny("tiny-v4-0731");
  tiny.edit_config([](json& config) { config.erase("dspark_block_size"); });
  expect_input_error([&] { const Checkpoint checkpoint(tiny.path()); },
                     {"mtp.2", "at most 1 drafter layers", "num_nextn_predict_layers", "found 3"});
}

}  // namespace
}  // namespace cupel
