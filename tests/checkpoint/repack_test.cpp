#include "cupel/checkpoint/repack.h"

#include <algorithm>
#include <cmath>

#include "support/expect_error.h"
#include "support/random.h"
#include "support/tiny_checkpoint.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/checkpoint/checkpoint.h"
#include "cupel/checkpoint/preflight.h"
#include "cupel/formats/bf16.h"
#include "cupel/formats/weight_blocks.h"

namespace cupel {
namespace {

using test::expect_input_error;
using test::StoredTensor;
using test::TemporaryFolder;
using test::TinyCheckpoint;

std::filesystem::path bundled(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
}

RepackReport repack_to(const std::filesystem::path& in, const std::filesystem::path& out,
                       ExpertDtype experts) {
  return repack(in, out, {experts, true, 2, {}});
}

TEST(Repack, ThereAndBackKeepsEveryValue) {
  const std::vector<std::pair<std::string, std::size_t>> models = {{"tiny-v4-preview", 3},
                                                                   {"tiny-v4-0731", 0}};
  for (const auto& [name, other_bytes] : models) {
    for (const auto form : {ExpertDtype::kFp8, ExpertDtype::kBf16}) {
      const TemporaryFolder folder;
      const auto there = repack_to(bundled(name), folder.path() / "there", form);
      EXPECT_TRUE(there.verified);
      const Checkpoint opened(folder.path() / "there");
      EXPECT_EQ(opened.config().expert_dtype, form);
      EXPECT_EQ(opened.config().expert_dtype_stated, form == ExpertDtype::kBf16);
      const auto back =
          repack_to(folder.path() / "there", folder.path() / "back", ExpertDtype::kFp4);
      for (const RepackReport* report : {&there, &back}) {
        for (const RepackedWeight& weight : report->weights) {
          EXPECT_TRUE(weight.lossy.empty()) << weight.name;
          EXPECT_EQ(weight.changed_elements, 0) << weight.name;
        }
      }
      const auto report = run_preflight(bundled(name), folder.path() / "back", {false, 2, {}});
      EXPECT_EQ(report.verdict, Verdict::kIdentical) << report.verdict_text;
      std::size_t groups = 0;
      for (const WeightChange& weight : report.weights) {
        EXPECT_NE(weight.status, WeightStatus::kChanged) << weight.name;
        if (weight.status == WeightStatus::kValueEqual) groups += weight.diff.changed_scales;
      }
      EXPECT_EQ(groups, other_bytes);
      // The other form is not the same computation.
      EXPECT_EQ(run_preflight(bundled(name), folder.path() / "there", {false, 2, {}}).verdict,
                Verdict::kInert);
    }
  }
}

// Against the scalar converter, with scales that spread far beyond what a block can hold.
TEST(ExpertForms, Fp4ToFp8IsTheConverterOfFormats) {
  test::Random random(7);
  for (const auto& [rows, columns] : {std::pair(128, 256), std::pair(200, 96), std::pair(1, 32)}) {
    const MatrixShape shape{static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
    std::vector<std::uint8_t> packed(shape.elements() / 2);
    std::vector<std::uint8_t> groups(shape.elements() / 32);
    for (auto& byte : packed) byte = static_cast<std::uint8_t>(random.bits());
    for (auto& scale : groups) scale = static_cast<std::uint8_t>(100 + random.below(30));
    groups[0] = static_cast<std::uint8_t>(random.below(3));
    std::vector<std::uint8_t> codes(shape.elements());
    std::vector<std::uint8_t> scales(shape.blocks());
    const std::size_t changed = convert_fp4_weight_to_fp8(packed, groups, shape, codes, scales);
    Tensor weight;
    weight.name = "w.weight";
    weight.dtype = Dtype::kI8;
    weight.shape = {rows, columns / 2};
    weight.data = std::as_bytes(std::span(packed));
    Tensor scale;
    scale.name = "w.scale";
    scale.dtype = Dtype::kF8E8M0;
    scale.shape = {rows, columns / 32};
    scale.data = std::as_bytes(std::span(groups));
    const ConvertedExpert converted = convert_expert(weight, &scale, ExpertDtype::kFp8);
    EXPECT_EQ(converted.bytes, codes);
    EXPECT_EQ(converted.scales, scales);
    EXPECT_EQ(converted.changed_elements, static_cast<std::int64_t>(changed));
  }
}

TEST(Repack, BlocksBeyondTheSpreadAreListed) {
  TinyCheckpoint tiny("tiny-v4-preview");
  const std::string name = "layers.1.ffn.experts.3.w1";
  // w1 is [128, 256]: group 9 of row 1 lies in the second block... made 20 octaves smaller.
  tiny.edit_tensor(name + ".scale", [](StoredTensor& tensor) {
    auto& scale = tensor.data[8 + 5];
    scale = static_cast<std::byte>(static_cast<int>(scale) - 20);
  });
  tiny.edit_tensor(name + ".weight", [](StoredTensor& tensor) {
    for (std::size_t i = 0; i < 16; ++i) tensor.data[128 + 5 * 16 + i] = std::byte{0x31};
  });
  const TemporaryFolder folder;
  const RepackReport report = repack_to(tiny.path(), folder.path() / "out", ExpertDtype::kFp8);
  std::int64_t changed = 0;
  for (const RepackedWeight& weight : report.weights) {
    changed += weight.changed_elements;
    if (weight.name != name + ".weight") {
      EXPECT_TRUE(weight.lossy.empty()) << weight.name;
      continue;
    }
    ASSERT_EQ(weight.lossy.size(), 1U);
    EXPECT_EQ(weight.lossy[0].row, 0);
    EXPECT_EQ(weight.lossy[0].column, 128);
    EXPECT_EQ(weight.lossy[0].changed, 32);
    EXPECT_GT(weight.lossy[0].exponent_spread, 14);
    EXPECT_GT(weight.lossy[0].relative_error, 0);
  }
  EXPECT_EQ(changed, 32);
  EXPECT_THAT(repack_text(report, 20), testing::HasSubstr(name + ".weight block at [0, 128]"));
}

TEST(ExpertForms, TheLargestLegalScaleAndTheRuleOtherwise) {
  std::vector<float> values(32 * 3);
  // 1 and 2: as codes 0.5 and 1 under scale 2, and three smaller scales would do.
  for (std::size_t i = 0; i < 32; ++i) values[i] = i % 2 == 0 ? 1.0f : -2.0f;
  // 0.5 .. 6: one scale only.
  const float codes[] = {0.5f, 1, 1.5f, 2, 3, 4, 6, -6};
  for (std::size_t i = 0; i < 32; ++i) values[32 + i] = codes[i % 8];
  // Never exact.
  for (std::size_t i = 0; i < 32; ++i) values[64 + i] = 1.0f + static_cast<float>(i) / 16;
  std::vector<std::uint16_t> stored;
  for (const float value : values) stored.push_back(bf16_from_float(value));
  Tensor weight;
  weight.name = "w.weight";
  weight.dtype = Dtype::kBF16;
  weight.shape = {3, 32};
  weight.data = std::as_bytes(std::span(stored));
  const ConvertedExpert out = convert_expert(weight, nullptr, ExpertDtype::kFp4);
  EXPECT_EQ(out.scales[0], 127 + 1);
  EXPECT_EQ(out.scales[1], 127);
  EXPECT_EQ(out.ambiguous_groups, std::vector<std::int64_t>{0});
  ASSERT_EQ(out.lossy.size(), 1U);
  EXPECT_EQ(out.lossy[0].row, 2);
  expect_input_error([&] { convert_expert(weight, nullptr, ExpertDtype::kBf16); },
                     {"bf16 already"});
  stored[5] = 0x7fc0;
  expect_input_error([&] { convert_expert(weight, nullptr, ExpertDtype::kFp8); },
                     {"w.weight", "NaN"});
}

TEST(Repack, RefusesAndLeavesNothing) {
  const TemporaryFolder folder;
  const auto in = bundled("tiny-v4-preview");
  const auto entries = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
  };
  expect_input_error([&] { repack_to(in, folder.path() / "out", ExpertDtype::kFp4); },
                     {"fp4 already"});
  expect_input_error([&] { repack_to(in, folder.path() / "no" / "out", ExpertDtype::kFp8); },
                     {"out.partial"});
  expect_input_error([&] { repack_to(folder.path(), folder.path() / "out", ExpertDtype::kFp8); },
                     {"config.json"});
  EXPECT_EQ(entries(), 0);
  std::filesystem::create_directory(folder.path() / "there");
  expect_input_error([&] { repack_to(in, folder.path() / "there", ExpertDtype::kFp8); },
                     {"nothing is overwritten"});
  EXPECT_EQ(entries(), 1);
  const TinyCheckpoint tiny("tiny-v4-preview");
  expect_input_error([&] { repack_to(tiny.path(), tiny.path() / "out", ExpertDtype::kFp8); },
                     {"inside it"});
  TinyCheckpoint half("tiny-v4-preview");
  const std::string shard = "model-00003-of-00003.safetensors";
  half.replace(shard, read_file(in / shard).substr(0, 1'000'000));
  expect_input_error([&] { repack_to(half.path(), folder.path() / "out", ExpertDtype::kFp8); },
                     {shard});
  EXPECT_EQ(entries(), 1);
}

TEST(Repack, GoesOnWhereARunStopped) {
  const TemporaryFolder folder;
  const auto in = bundled("tiny-v4-preview");
  const auto out = folder.path() / "out";
  // Stopped inside the second shard.
  RepackOptions options{ExpertDtype::kFp8, true, 2, {}};
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done > 8'000'000) throw std::runtime_error("stop");
  };
  EXPECT_THROW(repack(in, out, options), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_THROW(Checkpoint{folder.path() / "out.partial"}, InputError);
  expect_input_error([&] { repack_to(in, out, ExpertDtype::kBf16); }, {"out.partial"});
  options.progress = {};
  const RepackReport report = repack(in, out, options);
  EXPECT_EQ(report.resumed_shards, 1);
  const auto fresh = repack_to(in, folder.path() / "fresh", ExpertDtype::kFp8);
  EXPECT_EQ(report.weights.size(), fresh.weights.size());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "fresh")) {
    EXPECT_EQ(read_file(entry.path()), read_file(out / entry.path().filename())) << entry.path();
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}),
            std::distance(std::filesystem::directory_iterator(in), {}));
}

}  // namespace
}  // namespace cupel
