#include "cupel/checkpoint/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path bundled(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
}

TEST(Inspect, Facts) {
  const InspectFacts facts = inspect_checkpoint(Checkpoint(bundled("tiny-v4-0731")));
  EXPECT_EQ(facts.shards, 4);
  EXPECT_EQ(facts.drafter_stages, 3);
  EXPECT_THAT(facts.sliding_only_layers, ElementsAre(0, 1));
  EXPECT_THAT(facts.sparse_layers, ElementsAre(2, 4));
  EXPECT_THAT(facts.dense_entries_layers, ElementsAre(3));
  EXPECT_EQ(facts.used.tensors, 657);
  ASSERT_EQ(facts.skipped.size(), 1U);
  EXPECT_EQ(facts.skipped.at("no drafter runs").tensors, 385);
  // The index states the sum.
  EXPECT_EQ(facts.used.bytes + facts.skipped.at("no drafter runs").bytes, 19912924U);
  EXPECT_EQ(facts.by_dtype.at("I64").used.bytes, 2U * 768 * 4 * 8);
  EXPECT_EQ(facts.by_role.at("routed expert w1").tensors, 5 * 16);
  EXPECT_EQ(facts.by_role.at("indexer compressor ape").tensors, 2);
  EXPECT_EQ(facts.by_role.at("compressor ape").tensors, 3);
}

TEST(Inspect, SumsAgree) {
  const InspectFacts facts = inspect_checkpoint(Checkpoint(bundled("tiny-v4-preview")));
  TensorSum used;
  TensorSum skipped;
  TensorSum roles;
  for (const auto& [dtype, sum] : facts.by_dtype) {
    used.tensors += sum.used.tensors;
    used.bytes += sum.used.bytes;
    skipped.bytes += sum.skipped.bytes;
  }
  for (const auto& [role, sum] : facts.by_role) roles.bytes += sum.bytes;
  EXPECT_EQ(used.tensors, facts.used.tensors);
  EXPECT_EQ(used.bytes, facts.used.bytes);
  EXPECT_EQ(roles.bytes, facts.used.bytes);
  EXPECT_EQ(skipped.bytes, facts.skipped.at("no drafter runs").bytes);
}

TEST(Inspect, TextAndJsonSayTheSame) {
  const InspectFacts facts = inspect_checkpoint(Checkpoint(bundled("tiny-v4-preview")));
  const std::string text = inspect_text(facts);
  EXPECT_THAT(text, HasSubstr(facts.fingerprint));
  EXPECT_THAT(text, HasSubstr("skipped: no drafter runs"));
  EXPECT_THAT(text, HasSubstr(std::to_string(facts.used.bytes)));
  EXPECT_THAT(text, HasSubstr("mtp, 1 stored"));
  const auto json = nlohmann::json::parse(inspect_json(facts));
  EXPECT_EQ(json["fingerprint"], facts.fingerprint);
  EXPECT_EQ(json["used"]["bytes"], facts.used.bytes);
  EXPECT_EQ(json["skipped"]["no drafter runs"]["tensors"], 135);
  EXPECT_EQ(json["drafter"]["kind"], "mtp");
  EXPECT_EQ(json["layers"]["sparse"], (std::vector<int>{2, 4}));
  EXPECT_EQ(json["config"]["expert_dtype"], "fp4");
}

TEST(Inspect, ExitCode) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect(bundled("tiny-v4-preview"), true), 0);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_EQ(nlohmann::json::parse(out)["shards"], 3);
}

}  // namespace
}  // namespace cupel
