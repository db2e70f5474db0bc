// preflight and repack as a user runs them.
#include "cli/cupel_program.h"
#include "support/made_checkpoint.h"
#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::CheckpointMaker;
using test::CommandResult;
using test::Content;
using test::cupel_program;
using test::expect_refused;
using test::TemporaryFolder;
using test::TinyCheckpoint;
using testing::HasSubstr;

std::filesystem::path published(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "data/v4-flash" / name;
}

TEST(PreflightCommand, ExitCodesFollowTheVerdict) {
  const std::string preview = bundled("tiny-v4-preview");
  const CommandResult same = cupel_program({"preflight", preview, preview, "--no-numerics"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("verdict identical for the target"));
  EXPECT_THAT(same.out, HasSubstr("numerics: neither model was run (--no-numerics)"));
  const CommandResult pair = cupel_program(
      {"preflight", preview, bundled("tiny-v4-0731"), "--json", "--prompt-count", "1"});
  EXPECT_EQ(pair.exit_code, 2) << pair.err;
  const auto json = nlohmann::json::parse(pair.out);
  EXPECT_THAT(json.at("verdict_text").get<std::string>(),
              HasSubstr("structurally inert, numerics moved: "));
  EXPECT_EQ(json.at("numerics").at("new").at("layers").size(), 5U);
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_config([](nlohmann::json& config) { config["index_topk"] = 32; });
  const CommandResult changed =
      cupel_program({"preflight", preview, tiny.path(), "--prompt-count", "1"});
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_THAT(changed.out, HasSubstr("verdict structural change: config index_topk: 64 -> 32"));
  EXPECT_THAT(changed.out, HasSubstr("indexer of NEW: index_topk 32: selects from 132"));
  const CommandResult headers = cupel_program({"preflight", preview, preview, "--headers-only"});
  EXPECT_EQ(headers.exit_code, 2);
  EXPECT_THAT(headers.out, HasSubstr("not decided"));
  EXPECT_THAT(headers.out, HasSubstr("numerics: OLD is looked at by its headers"));
}

TEST(PreflightCommand, BadInputIsRefused) {
  const std::string preview = bundled("tiny-v4-preview");
  expect_refused(cupel_program({"preflight", preview, "/nowhere"}), {"/nowhere"});
  const TemporaryFolder empty;
  expect_refused(cupel_program({"preflight", empty.path(), preview}), {"config.json", "neither"});
  const auto prompts = empty.path() / "prompts.jsonl";
  expect_refused(cupel_program({"preflight", preview, preview, "--prompts", prompts}),
                 {"prompts.jsonl"});
  test::write_file(prompts, "{\"prompt\": \"a\"}\n{}\n");
  expect_refused(cupel_program({"preflight", preview, preview, "--prompts", prompts}),
                 {"prompts.jsonl:2"});
}

// The published checkpoints by their headers: spec section 2.1.
TEST(InspectCommand, FullSizeByHeadersAlone) {
  const TemporaryFolder folder;
  const std::string config = read_file(published("config.0731.json"));
  const CheckpointMaker made(folder.path(), config, 3, Content::kHeaders);
  const CommandResult result =
      cupel_program({"inspect", folder.path(), "--headers-only", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("used").at("tensors"), 67612);
  EXPECT_EQ(json.at("used").at("bytes"), 156'015'698'140U);
  EXPECT_EQ(json.at("skipped").at("no drafter runs").at("tensors"), 72317 - 67612);
  EXPECT_EQ(json.at("skipped").at("no drafter runs").at("bytes"),
            166'878'536'440U - 156'015'698'140U);
  expect_refused(cupel_program({"inspect", folder.path()}), {"model-00001.safetensors"});
}

}  // namespace
}  // namespace cupel
