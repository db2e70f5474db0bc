#include "cupel/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "support/expect_error.h"
#include "support/tiny_checkpoint.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::expect_input_error;
using test::StoredTensor;
using test::TinyCheckpoint;

std::filesystem::path bundled(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
}

struct Counts {
  int used = 0;
  int skipped = 0;
};

Counts count(const Checkpoint& checkpoint) {
  Counts counts;
  for (const CatalogueEntry& entry : checkpoint.catalogue()) {
    EXPECT_NE(entry.used, !entry.reason.empty()) << entry.tensor->name;
    EXPECT_FALSE(entry.role.empty()) << entry.tensor->name;
    EXPECT_NE(entry.used, entry.tensor->name.starts_with("mtp.")) << entry.tensor->name;
    ++(entry.used ? counts.used : counts.skipped);
  }
  return counts;
}

bool is_expert_weight(const StoredTensor& tensor) {
  return tensor.name.find(".experts.") != std::string::npos && tensor.name.ends_with(".weight");
}

// Every routed expert of the shards as `dtype`, with arbitrary values and unit scales.
void restore_experts(TinyCheckpoint& checkpoint, Dtype dtype, Dtype scale_dtype) {
  for (const auto& entry : std::filesystem::directory_iterator(bundled("tiny-v4-preview"))) {
    if (entry.path().extension() != ".safetensors") continue;
    checkpoint.edit_shard(entry.path().filename(), [&](std::vector<StoredTensor>& tensors) {
      for (StoredTensor& tensor : tensors) {
        if (tensor.name.find(".experts.") == std::string::npos) continue;
        const bool weight = is_expert_weight(tensor);
        const bool w2 = tensor.name.find(".w2.") != std::string::npos;
        if (weight) {
          tensor.dtype = dtype;
          tensor.shape =
              w2 ? std::vector<std::int64_t>{256, 128} : std::vector<std::int64_t>{128, 256};
        } else {
          tensor.dtype = scale_dtype;
          tensor.shape = w2 ? std::vector<std::int64_t>{2, 1} : std::vector<std::int64_t>{1, 2};
        }
        tensor.data.assign(*checked_bytes(tensor.shape, tensor.dtype), std::byte{0x01});
      }
      if (dtype == Dtype::kBF16) {
        std::erase_if(tensors, [](const StoredTensor& t) {
          return t.name.find(".experts.") != std::string::npos && t.name.ends_with(".scale");
        });
      }
    });
  }
  checkpoint.edit_index([&](nlohmann::json& index) {
    index.erase("metadata");
    if (dtype != Dtype::kBF16) return;
    nlohmann::json kept = nlohmann::json::object();
    for (const auto& [name, shard] : index["weight_map"].items()) {
      if (name.find(".experts.") == std::string::npos || !name.ends_with(".scale")) {
        kept[name] = shard;
      }
    }
    index["weight_map"] = kept;
  });
}

TEST(Checkpoint, BundledPreview) {
  const Checkpoint checkpoint(bundled("tiny-v4-preview"));
  EXPECT_EQ(checkpoint.catalogue().size(), 792U);
  EXPECT_EQ(count(checkpoint).used, 657);
  EXPECT_EQ(count(checkpoint).skipped, 135);
  EXPECT_EQ(checkpoint.config().drafter, DrafterKind::kMtp);
  EXPECT_EQ(checkpoint.drafter_stages(), 1);
  EXPECT_EQ(checkpoint.tensor("embed.weight").shape, (std::vector<std::int64_t>{768, 256}));
  EXPECT_EQ(checkpoint.find("no.such.tensor"), nullptr);
  expect_input_error([&] { checkpoint.tensor("no.such.tensor"); }, {"no.such.tensor"});
}

// One num_nextn_predict_layers, three stages.
TEST(Checkpoint, Bundled0731) {
  const Checkpoint checkpoint(bundled("tiny-v4-0731"));
  EXPECT_EQ(checkpoint.catalogue().size(), 1042U);
  EXPECT_EQ(count(checkpoint).used, 657);
  EXPECT_EQ(count(checkpoint).skipped, 385);
  EXPECT_EQ(checkpoint.config().nextn_predict_layers, 1);
  EXPECT_EQ(checkpoint.config().drafter, DrafterKind::kDspark);
  EXPECT_EQ(checkpoint.drafter_stages(), 3);
}

TEST(Checkpoint, OneFileWithoutIndex) {
  TinyCheckpoint tiny("tiny-v4-preview");
  std::vector<StoredTensor> all;
  for (const int shard : {1, 2, 3}) {
    const auto file = fmt::format("model-0000{}-of-00003.safetensors", shard);
    auto tensors = TinyCheckpoint::read(tiny.path() / file);
    std::ranges::move(tensors, std::back_inserter(all));
    std::filesystem::remove(tiny.path() / file);
  }
  std::filesystem::remove(tiny.path() / "model.safetensors.index.json");
  TinyCheckpoint::write(tiny.path() / "model.safetensors", all);
  const Checkpoint checkpoint(tiny.path());
  EXPECT_EQ(count(checkpoint).used, 657);
  // The split into shards is no property of the model.
  EXPECT_EQ(checkpoint.fingerprint(), Checkpoint(bundled("tiny-v4-preview")).fingerprint());
}

TEST(Checkpoint, SurvivesAMove) {
  Checkpoint first(bundled("tiny-v4-preview"));
  const Checkpoint second = std::move(first);
  const Tensor& tensor = second.tensor("norm.weight");
  EXPECT_EQ(tensor.name, "norm.weight");
  EXPECT_EQ(tensor.data.size(), 512U);
  EXPECT_EQ(count(second).used, 657);
}

TEST(Checkpoint, WithoutDrafterTensors) {
  TinyCheckpoint tiny("tiny-v4-0731");
  tiny.remove_tensors([](const std::string& name) { return name.starts_with("mtp."); });
  // The last shard held nothing else; the index no longer names it.
  std::filesystem::remove(tiny.path() / "model-00004-of-00004.safetensors");
  const Checkpoint checkpoint(tiny.path());
  EXPECT_EQ(count(checkpoint).skipped, 0);
  EXPECT_EQ(checkpoint.drafter_stages(), 0);
}

TEST(Checkpoint, Fp8ExpertsAreFoundWithoutAStatement) {
  for (const Dtype scale : {Dtype::kF8E8M0, Dtype::kF32}) {
    TinyCheckpoint tiny("tiny-v4-preview");
    restore_experts(tiny, Dtype::kF8E4M3, scale);
    tiny.edit_config([](nlohmann::json& config) { config.erase("expert_dtype"); });
    const Checkpoint checkpoint(tiny.path());
    EXPECT_EQ(checkpoint.config().expert_dtype, ExpertDtype::kFp8);
    EXPECT_EQ(count(checkpoint).used, 657);
  }
}

TEST(Checkpoint, Fp4ExpertsAreFoundWithoutAStatement) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_config([](nlohmann::json& config) { config.erase("expert_dtype"); });
  EXPECT_EQ(Checkpoint(tiny.path()).config().expert_dtype, ExpertDtype::kFp4);
}

TEST(Checkpoint, Bf16ExpertsHaveNoScales) {
  TinyCheckpoint tiny("tiny-v4-preview");
  restore_experts(tiny, Dtype::kBF16, Dtype::kF8E8M0);
  tiny.edit_config([](nlohmann::json& config) { config.erase("expert_dtype"); });
  const Checkpoint checkpoint(tiny.path());
  EXPECT_EQ(checkpoint.config().expert_dtype, ExpertDtype::kBf16);
  EXPECT_EQ(count(checkpoint).used, 657 - 5 * 16 * 3);
}

TEST(Checkpoint, WoAWithoutScaleAsBf16) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.1.attn.wo_a.weight", [](StoredTensor& tensor) {
    tensor.dtype = Dtype::kBF16;
    tensor.data.resize(2 * tensor.data.size());
  });
  tiny.remove_tensor("layers.1.attn.wo_a.scale");
  EXPECT_EQ(count(Checkpoint(tiny.path())).used, 656);
}

TEST(Checkpoint, F32ScaleOfADenseLinear) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.0.attn.wq_a.scale", [](StoredTensor& tensor) {
    tensor.dtype = Dtype::kF32;
    const float values[] = {0.25F, 0.0F};
    tensor.data.resize(sizeof(values));
    std::memcpy(tensor.data.data(), values, sizeof(values));
  });
  EXPECT_EQ(count(Checkpoint(tiny.path())).used, 657);
}

TEST(Fingerprint, SeesConfigurationAndData) {
  const std::string preview = Checkpoint(bundled("tiny-v4-preview")).fingerprint();
  EXPECT_EQ(preview.size(), 32U);
  EXPECT_EQ(preview, Checkpoint(bundled("tiny-v4-preview")).fingerprint());
  EXPECT_NE(preview, Checkpoint(bundled("tiny-v4-0731")).fingerprint());

  TinyCheckpoint config("tiny-v4-preview");
  config.edit_config([](nlohmann::json& json) { json["swiglu_limit"] = 9.0; });
  EXPECT_NE(preview, Checkpoint(config.path()).fingerprint());

  TinyCheckpoint data("tiny-v4-preview");
  data.edit_tensor("norm.weight", [](StoredTensor& tensor) { tensor.data[511] ^= std::byte{1}; });
  EXPECT_NE(preview, Checkpoint(data.path()).fingerprint());
}

TEST(ResolveModelPath, FlagThenVariable) {
  const char* variable = "DEEPSEEK_V4_FP4_MODEL_PATH";
  const std::string preview = bundled("tiny-v4-preview").string();
  const std::string other = bundled("tiny-v4-0731").string();
  ::setenv(variable, preview.c_str(), 1);
  EXPECT_EQ(resolve_model_path(std::nullopt), preview);
  EXPECT_EQ(resolve_model_path(other), other);
  expect_input_error([] { resolve_model_path("/nonexistent"); },
                     {"--model", "an existing folder", R"("/nonexistent")"});
  ::setenv(variable, "/nonexistent", 1);
  expect_input_error([] { resolve_model_path(std::nullopt); }, {variable, R"("/nonexistent")"});
  ::setenv(variable, "", 1);
  expect_input_error([] { resolve_model_path(std::nullopt); }, {"--model", variable, "neither"});
  ::unsetenv(variable);
  expect_input_error([] { resolve_model_path(std::nullopt); }, {"--model", variable, "neither"});
}

}  // namespace
}  // namespace cupel
