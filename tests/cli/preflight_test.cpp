// preflight and repack as a user runs them.
#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using test::TemporaryFolder;
using test::TinyCheckpoint;
using testing::HasSubstr;

TEST(PreflightCommand, ExitCodesFollowTheVerdict) {
  const std::string preview = bundled("tiny-v4-preview");
  const CommandResult same = cupel_program({"preflight", preview, preview});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("verdict identical for the target"));
  const CommandResult pair =
      cupel_program({"preflight", preview, bundled("tiny-v4-0731"), "--json"});
  EXPECT_EQ(pair.exit_code, 2) << pair.err;
  EXPECT_THAT(nlohmann::json::parse(pair.out).at("verdict_text").get<std::string>(),
              HasSubstr("structurally inert, numerics moved: "));
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.edit_config([](nlohmann::json& config) { config["index_topk"] = 32; });
  const CommandResult changed = cupel_program({"preflight", preview, tiny.path()});
  EXPECT_EQ(changed.exit_code, 1);
  EXPECT_THAT(changed.out, HasSubstr("verdict structural change: config index_topk: 64 -> 32"));
  const CommandResult headers = cupel_program({"preflight", preview, preview, "--headers-only"});
  EXPECT_EQ(headers.exit_code, 2);
  EXPECT_THAT(headers.out, HasSubstr("not decided"));
  expect_refused(cupel_program({"preflight", preview, "/nowhere"}), {"/nowhere"});
  const TemporaryFolder empty;
  expect_refused(cupel_program({"preflight", empty.path(), preview}), {"config.json", "neither"});
}

TEST(RepackCommand, WritesAndRefuses) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const std::vector<std::string> words = {
      "repack", "--experts", "fp8", bundled("tiny-v4-preview"), out, "--verify", "--throughput"};
  const CommandResult first = cupel_program(words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("576 lossless, 0 lossy"));
  EXPECT_THAT(first.err, HasSubstr("ratio"));
  EXPECT_EQ(cupel_program({"inspect", out}).exit_code, 0);
  expect_refused(cupel_program(words), {"nothing is overwritten"});
  expect_refused(cupel_program({"repack", bundled("tiny-v4-preview"), out}), {"--experts"});
  expect_refused(
      cupel_program({"repack", "--experts", "fp8", bundled("tiny-v4-preview"), "/proc/out"}),
      {"/proc/out"});
}

// A file-size limit stands for a full disk: the write fails in the middle of a shard.
TEST(RepackCommand, AFailedWriteLeavesNothingThatLooksComplete) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out";
  const std::string words = std::string(CUPEL_PROGRAM) + " repack --experts fp8 " +
                            bundled("tiny-v4-preview") + " " + out;
  const CommandResult full =
      test::run_command({"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 4000; exec " + words});
  EXPECT_EQ(full.exit_code, 3) << full.err;
  EXPECT_THAT(full.err, HasSubstr("cannot write"));
  EXPECT_FALSE(std::filesystem::exists(out));
  const CommandResult again = test::run_command({"/bin/sh", "-c", "exec " + words});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".partial"));
}

}  // namespace
}  // namespace cupel
