// Planted changes: each is found, named, and stands first; identical folders give no finding.
#include "cupel/checkpoint/preflight.h"

#include <algorithm>
#include <cstring>

#include "support/made_checkpoint.h"
#include "support/tiny_checkpoint.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/formats/bf16.h"

namespace cupel {
namespace {

using test::StoredTensor;
using test::TinyCheckpoint;
using testing::HasSubstr;

const std::filesystem::path kSource(CUPEL_SOURCE_DIR);
const std::filesystem::path kPreview = kSource / "models/tiny-v4-preview";
const std::filesystem::path k0731 = kSource / "models/tiny-v4-0731";

PreflightReport preflight(const std::filesystem::path& before, const std::filesystem::path& after,
                          bool headers_only = false) {
  return run_preflight(before, after, {headers_only, 2, {}});
}

// OLD is the bundled preview.
PreflightReport against_preview(const TinyCheckpoint& planted) {
  return preflight(kPreview, planted.path());
}

void expect_first(const PreflightReport& report, Severity severity,
                  const std::vector<std::string>& parts, Verdict verdict) {
  ASSERT_FALSE(report.findings.empty());
  const Finding& first = report.findings.front();
  EXPECT_EQ(first.severity, severity) << first.what;
  for (const std::string& part : parts) {
    EXPECT_THAT(first.what + " | " + first.evidence, HasSubstr(part));
  }
  EXPECT_EQ(report.verdict, verdict) << report.verdict_text;
}

const StoredTensor& tensor_of(const std::vector<StoredTensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &StoredTensor::name);
}

TEST(Preflight, IdenticalFoldersGiveNoFinding) {
  for (const auto& folder : {kPreview, k0731}) {
    const PreflightReport report = preflight(folder, folder);
    EXPECT_TRUE(report.findings.empty()) << report.findings.front().what;
    EXPECT_EQ(report.verdict, Verdict::kIdentical);
    EXPECT_EQ(exit_code(report.verdict), ExitCode::kPass);
    // Every byte was read: it is the hash that says so.
    EXPECT_EQ(report.bytes_read, 2 * report.after.bytes);
  }
}

TEST(Preflight, ZeroedExpert) {
  TinyCheckpoint tiny("tiny-v4-preview");
  for (const std::string w : {"w1", "w2", "w3"}) {
    tiny.edit_tensor("layers.2.ffn.experts.5." + w + ".weight",
                     [](StoredTensor& tensor) { std::ranges::fill(tensor.data, std::byte{0}); });
  }
  expect_first(against_preview(tiny), Severity::kDamage,
               {"layers.2.ffn.experts.5: zeroed", "3 of its 3"}, Verdict::kInert);
}

TEST(Preflight, SwappedExperts) {
  TinyCheckpoint tiny("tiny-v4-preview");
  const std::string a = "layers.3.ffn.experts.2.";
  const std::string b = "layers.3.ffn.experts.11.";
  tiny.edit_shard(tiny.shard_of(a + "w1.weight"), [&](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors) {
      if (tensor.name.starts_with(a)) {
        tensor.name.replace(0, a.size(), b);
      } else if (tensor.name.starts_with(b)) {
        tensor.name.replace(0, b.size(), a);
      }
    }
  });
  const PreflightReport report = against_preview(tiny);
  expect_first(report, Severity::kDamage,
               {"layers.3.ffn.experts.2:", "layers.3.ffn.experts.11 ", "swapped"}, Verdict::kInert);
  EXPECT_EQ(report.findings.front().tensors.size(), 6U);
}

TEST(Preflight, DuplicatedExpert) {
  TinyCheckpoint tiny("tiny-v4-preview");
  const std::string shard = tiny.shard_of("layers.3.ffn.experts.2.w1.weight");
  tiny.edit_shard(shard, [&](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors) {
      const std::string copy = "layers.3.ffn.experts.2.";
      if (!tensor.name.starts_with(copy)) continue;
      tensor.data =
          tensor_of(tensors, "layers.3.ffn.experts.7." + tensor.name.substr(copy.size())).data;
    }
  });
  expect_first(against_preview(tiny), Severity::kDamage,
               {"layers.3.ffn.experts.2 and layers.3.ffn.experts.7", "duplicate"}, Verdict::kInert);
}

TEST(Preflight, SwappedNibbles) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.1.ffn.experts.3.w2.weight", [](StoredTensor& tensor) {
    for (std::byte& byte : tensor.data) byte = byte << 4 | byte >> 4;
  });
  expect_first(against_preview(tiny), Severity::kDamage,
               {"layers.1.ffn.experts.3.w2.weight", "nibbles swapped"}, Verdict::kInert);
}

TEST(Preflight, OneScaleDoubled) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.4.ffn.experts.9.w3.scale", [](StoredTensor& tensor) {
    tensor.data[77] = static_cast<std::byte>(static_cast<int>(tensor.data[77]) + 1);
  });
  expect_first(against_preview(tiny), Severity::kSuspect,
               {"layers.4.ffn.experts.9.w3.weight", "1 of ", "+1", "first number 77"},
               Verdict::kInert);
}

TEST(Preflight, PermutedSinks) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.1.attn.attn_sink", [](StoredTensor& tensor) {
    std::swap_ranges(tensor.data.begin(), tensor.data.begin() + 4, tensor.data.begin() + 8);
  });
  expect_first(against_preview(tiny), Severity::kDamage,
               {"layers.1.attn.attn_sink", "elements permuted"}, Verdict::kInert);
}

TEST(Preflight, ShiftedApe) {
  for (const std::string name : {"layers.2.attn.compressor.ape", "layers.3.attn.compressor.ape"}) {
    TinyCheckpoint tiny("tiny-v4-preview");
    tiny.edit_tensor(name, [](StoredTensor& tensor) {
      const auto row = static_cast<std::ptrdiff_t>(tensor.data.size()) / tensor.shape[0];
      std::rotate(tensor.data.begin(), tensor.data.end() - row, tensor.data.end());
    });
    expect_first(against_preview(tiny), Severity::kDamage, {name, "shifted by 1"}, Verdict::kInert);
  }
}

TEST(Preflight, ScaledGate) {
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_tensor("layers.2.attn.compressor.wgate.weight", [](StoredTensor& tensor) {
    for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, tensor.data.data() + i, 2);
      bits = bf16_from_float(1.05f * bf16_to_float(bits));
      std::memcpy(tensor.data.data() + i, &bits, 2);
    }
  });
  expect_first(against_preview(tiny), Severity::kSuspect,
               {"layers.2.attn.compressor.wgate.weight", "scaled by 1.05"}, Verdict::kInert);
}

TEST(Preflight, ConfigOfTheTarget) {
  TinyCheckpoint theta("tiny-v4-preview");
  theta.edit_config([](nlohmann::json& config) { config["rope_theta"] = 160000; });
  expect_first(against_preview(theta), Severity::kStructure, {"rope_theta: 10000 -> 160000"},
               Verdict::kStructural);
  TinyCheckpoint topk("tiny-v4-preview");
  topk.edit_config([](nlohmann::json& config) { config["index_topk"] = 32; });
  expect_first(against_preview(topk), Severity::kStructure, {"index_topk: 64 -> 32"},
               Verdict::kStructural);
}

TEST(Preflight, FaultsAreFindings) {
  TinyCheckpoint scale("tiny-v4-preview");
  scale.remove_tensor("layers.0.attn.wo_a.scale");
  const PreflightReport report = against_preview(scale);
  expect_first(report, Severity::kFault, {"layers.0.attn.wo_a.scale", "found none"},
               Verdict::kStructural);
  EXPECT_EQ(exit_code(report.verdict), ExitCode::kRegression);

  TinyCheckpoint half("tiny-v4-preview");
  const std::string shard = "model-00002-of-00003.safetensors";
  half.replace(shard, read_file(kPreview / shard).substr(0, 3'000'000));
  expect_first(against_preview(half), Severity::kFault, {shard, "half-downloaded"},
               Verdict::kStructural);

  TinyCheckpoint index("tiny-v4-preview");
  std::filesystem::remove(index.path() / "model.safetensors.index.json");
  expect_first(against_preview(index), Severity::kFault, {"model.safetensors.index.json"},
               Verdict::kStructural);

  TinyCheckpoint lost("tiny-v4-preview");
  std::filesystem::remove(lost.path() / shard);
  const PreflightReport without = against_preview(lost);
  EXPECT_EQ(without.findings.front().severity, Severity::kFault);
  EXPECT_THAT(without.findings.front().what, HasSubstr(shard));
}

TEST(Preflight, NanScalesAndOtherTokenizers) {
  TinyCheckpoint nan("tiny-v4-preview");
  nan.edit_tensor("layers.4.attn.wkv.scale",
                  [](StoredTensor& tensor) { tensor.data[0] = std::byte{255}; });
  expect_first(against_preview(nan), Severity::kDamage, {"layers.4.attn.wkv.weight", "NaN"},
               Verdict::kInert);
  TinyCheckpoint tokenizer("tiny-v4-preview");
  tokenizer.edit_json("tokenizer.json", [](nlohmann::json& json) { json["version"] = "2"; });
  expect_first(against_preview(tokenizer), Severity::kStructure, {"tokenizer.json"},
               Verdict::kStructural);
}

TEST(Preflight, RenamedAndDrafterOnly) {
  TinyCheckpoint drafter("tiny-v4-preview");
  drafter.edit_tensor("mtp.0.enorm.weight",
                      [](StoredTensor& tensor) { tensor.data[0] ^= std::byte{1}; });
  const PreflightReport report = against_preview(drafter);
  EXPECT_EQ(report.verdict, Verdict::kIdentical) << report.verdict_text;
  ASSERT_FALSE(report.findings.empty());
  EXPECT_GE(report.findings.front().severity, Severity::kDrafter);

  TinyCheckpoint renamed("tiny-v4-preview");
  const std::string shard = renamed.shard_of("norm.weight");
  renamed.edit_shard(shard, [](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors) {
      if (tensor.name == "norm.weight") tensor.name = "model.norm.weight";
    }
  });
  renamed.edit_index([&](nlohmann::json& index) {
    index["weight_map"].erase("norm.weight");
    index["weight_map"]["model.norm.weight"] = shard;
  });
  const PreflightReport names = against_preview(renamed);
  EXPECT_TRUE(std::ranges::any_of(names.weights, [](const WeightChange& w) {
    return w.status == WeightStatus::kRenamed && w.renamed_to == "model.norm.weight";
  }));
}

TEST(Preflight, TheBundledPair) {
  const PreflightReport report = preflight(kPreview, k0731);
  EXPECT_EQ(report.verdict, Verdict::kInert);
  EXPECT_EQ(exit_code(report.verdict), ExitCode::kInconclusive);
  EXPECT_EQ(report.same_main_ratios, true);
  for (const ConfigChange& change : report.config) {
    EXPECT_EQ(change.touches, Touches::kDrafter) << change.field;
  }
  EXPECT_EQ(report.config.size(), 5U);
  std::int64_t equal = 0;
  for (const WeightChange& w : report.weights) {
    if (!w.target) continue;
    EXPECT_TRUE(w.status == WeightStatus::kChanged || w.status == WeightStatus::kBitEqual);
    equal += w.status == WeightStatus::kBitEqual;
  }
  EXPECT_EQ(equal, 2);  // the token routes
  const auto json = nlohmann::json::parse(preflight_json(report, {}));
  EXPECT_EQ(json.at("exit_code"), 2);
  EXPECT_EQ(json.at("weights").size(), report.weights.size() - 2);
  EXPECT_THAT(preflight_text(report, {}), HasSubstr(report.verdict_text));
}

TEST(Preflight, PublishedConfigs) {
  const auto report = preflight(kSource / "data/v4-flash/config.preview.json",
                                kSource / "data/v4-flash/config.0731.json");
  EXPECT_EQ(report.verdict, Verdict::kUndecided);
  EXPECT_EQ(report.same_main_ratios, true);
  for (const PreflightSide* side : {&report.before, &report.after}) {
    EXPECT_EQ(side->facts->sparse_layers, 21);
    EXPECT_EQ(side->facts->dense_entries_layers, 20);
    EXPECT_EQ(side->facts->target_tensors, 67612);
    EXPECT_EQ(side->facts->target_bytes, 156'015'698'140U);
    EXPECT_EQ(side->config->nextn_predict_layers, 1);
    // serving-stack A.2: 3.85, 6.23 and 4.15 kB.
    EXPECT_NEAR(side->facts->caches[0].bytes_per_token, 3850, 1);
    EXPECT_NEAR(side->facts->caches[1].bytes_per_token, 6229, 1);
    EXPECT_NEAR(side->facts->caches[2].bytes_per_token, 4153, 1);
  }
  EXPECT_EQ(report.before.facts->drafter, DrafterKind::kMtp);
  EXPECT_EQ(report.after.facts->drafter, DrafterKind::kDspark);
  EXPECT_EQ(report.after.facts->drafter_stages, 3);
  EXPECT_TRUE(std::ranges::none_of(report.config, [](const ConfigChange& change) {
    return change.touches == Touches::kTarget || change.touches == Touches::kUnknown;
  }));
}

TEST(Preflight, FullSizeHeaders) {
  const test::TemporaryFolder preview;
  const test::TemporaryFolder next;
  const auto make = [](const test::TemporaryFolder& folder, const char* config, int stages) {
    const std::string text = read_file(kSource / "data/v4-flash" / config);
    test::CheckpointMaker(folder.path(), text, stages, test::Content::kHeaders);
  };
  make(preview, "config.preview.json", 1);
  make(next, "config.0731.json", 3);
  const PreflightReport report = preflight(preview.path(), next.path());
  EXPECT_EQ(report.before.tensors, 69187);
  EXPECT_EQ(report.after.tensors, 72317);
  EXPECT_EQ(report.before.bytes, 159'609'485'896U);
  EXPECT_EQ(report.after.bytes, 166'878'536'440U);
  EXPECT_EQ(report.verdict, Verdict::kUndecided);
  EXPECT_EQ(exit_code(report.verdict), ExitCode::kInconclusive);
  EXPECT_TRUE(report.before.faults.empty());
  EXPECT_TRUE(report.after.faults.empty());
  EXPECT_GE(report.findings.front().severity, Severity::kDrafter);
}

TEST(ConfigDiff, ByMeaning) {
  const auto diff = [](const std::string& a, const std::string& b) {
    return diff_configs(a, "a", b, "b");
  };
  EXPECT_TRUE(diff(R"({"rope_theta":10000})", R"({"rope_theta":10000.0})").empty());
  const auto same = diff("{}", R"({"norm_topk_prob":true})");
  ASSERT_EQ(same.size(), 1U);
  EXPECT_EQ(same[0].touches, Touches::kNothing);
  EXPECT_EQ(diff("{}", R"({"norm_topk_prob":false})")[0].touches, Touches::kTarget);
  EXPECT_EQ(diff("{}", R"({"new_field":1})")[0].touches, Touches::kUnknown);
  // The same lists, cut at another number of main layers.
  const auto cut = diff(R"({"num_hidden_layers":1,"compress_ratios":[0,4]})",
                        R"({"num_hidden_layers":1,"compress_ratios":[4,4]})");
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].touches, Touches::kTarget);
  EXPECT_THAT(cut[0].meaning, HasSubstr("layer 0: 0 -> 4"));
}

}  // namespace
}  // namespace cupel
