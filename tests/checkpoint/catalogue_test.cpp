#include "cupel/checkpoint/catalogue.h"

#include <set>

#include <gtest/gtest.h>

namespace cupel {
namespace {

struct Totals {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::set<std::string> names;

  // With every tensor in its first legal storage: FP4 experts, FP8 elsewhere, E8M0 scales.
  void add(const ExpectedTensor& tensor) {
    const Storage storage = legal_storages(tensor).front();
    tensors += storage.tensors();
    bytes += storage.bytes();
    names.insert(tensor.name);
    if (!storage.scale_shape.empty()) names.insert(scale_name(tensor.name));
  }
};

ModelConfig published(const std::string& name) {
  return load_config(std::filesystem::path(CUPEL_SOURCE_DIR) / "data/v4-flash" / name);
}

Totals main_totals(const ModelConfig& config) {
  Totals totals;
  const auto add = [&](const ExpectedTensor& tensor) { totals.add(tensor); };
  visit_trunk_tensors(config, add);
  for (int layer = 0; layer < config.layers; ++layer) visit_layer_tensors(config, layer, add);
  return totals;
}

Totals drafter_totals(const ModelConfig& config, int stage, int stages) {
  Totals totals;
  visit_drafter_tensors(config, stage, stages, [&](const ExpectedTensor& t) { totals.add(t); });
  return totals;
}

TEST(Catalogue, MainPartOfThePublishedCheckpoints) {
  for (const char* name : {"config.preview.json", "config.0731.json"}) {
    const Totals totals = main_totals(published(name));
    EXPECT_EQ(totals.tensors, 67612) << name;
    EXPECT_EQ(totals.bytes, 156'015'698'140U) << name;
    EXPECT_EQ(totals.names.size(), 67612U) << name;  // none twice
  }
}

TEST(Catalogue, TensorsOfEachLayerKind) {
  const ModelConfig config = published("config.preview.json");
  for (int layer = 0; layer < config.layers; ++layer) {
    Totals totals;
    visit_layer_tensors(config, layer, [&](const ExpectedTensor& tensor) { totals.add(tensor); });
    const std::int64_t expected = config.ratio(layer) == 0   ? 1565
                                  : config.ratio(layer) == 4 ? 1576
                                                             : 1569;
    EXPECT_EQ(totals.tensors, expected) << layer;
    const std::string gate = "layers." + std::to_string(layer) + ".ffn.gate.";
    EXPECT_EQ(totals.names.contains(gate + "tid2eid"), layer < 3) << layer;
    EXPECT_EQ(totals.names.contains(gate + "bias"), layer >= 3) << layer;
  }
}

// With the main part, exactly the total_size that the published indexes state.
TEST(Catalogue, DraftersOfThePublishedCheckpoints) {
  const ModelConfig preview = published("config.preview.json");
  const Totals mtp = drafter_totals(preview, 0, 1);
  EXPECT_EQ(mtp.tensors, 1575);
  EXPECT_EQ(main_totals(preview).bytes + mtp.bytes, 159'609'485'896U);

  const ModelConfig dspark = published("config.0731.json");
  std::uint64_t bytes = main_totals(dspark).bytes;
  const std::int64_t expected[] = {1568, 1565, 1572};
  for (int stage = 0; stage < 3; ++stage) {
    const Totals totals = drafter_totals(dspark, stage, 3);
    EXPECT_EQ(totals.tensors, expected[stage]);
    bytes += totals.bytes;
  }
  EXPECT_EQ(bytes, 166'878'536'440U);
}

TEST(Catalogue, ASingleDsparkStageIsFirstAndLast) {
  const Totals totals = drafter_totals(published("config.0731.json"), 0, 1);
  EXPECT_TRUE(totals.names.contains("mtp.0.main_proj.scale"));
  EXPECT_TRUE(totals.names.contains("mtp.0.markov_head.markov_w1.weight"));
  EXPECT_EQ(totals.tensors, 1565 + 3 + 7);
}

TEST(Catalogue, ExpertStorages) {
  const ExpectedTensor expert{
      "e.w1.weight", "routed expert w1", {2048, 4096}, Encoding::kExpert, Dtype::kI8};
  const auto storages = legal_storages(expert);
  ASSERT_EQ(storages.size(), 3U);
  EXPECT_EQ(storages[0].dtype, Dtype::kI8);
  EXPECT_EQ(storages[0].shape, (std::vector<std::int64_t>{2048, 2048}));
  EXPECT_EQ(storages[0].scale_shape, (std::vector<std::int64_t>{2048, 128}));
  EXPECT_EQ(storages[1].dtype, Dtype::kF8E4M3);
  EXPECT_EQ(storages[1].shape, (std::vector<std::int64_t>{2048, 4096}));
  EXPECT_EQ(storages[1].scale_shape, (std::vector<std::int64_t>{16, 32}));
  EXPECT_EQ(storages[2].dtype, Dtype::kBF16);
  EXPECT_TRUE(storages[2].scale_shape.empty());
  EXPECT_EQ(scale_name(expert.name), "e.w1.scale");
}

}  // namespace
}  // namespace cupel
