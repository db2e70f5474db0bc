#include "cli/cupel_program.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using test::TinyCheckpoint;
using testing::HasSubstr;

TEST(InspectCommand, BothModelsAsTextAndAsJson) {
  const std::map<std::string, int> tensors = {{"tiny-v4-preview", 792}, {"tiny-v4-0731", 1042}};
  for (const auto& [name, count] : tensors) {
    const CommandResult text = cupel_program({"inspect", bundled(name)});
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_EQ(text.err, "");
    EXPECT_THAT(text.out, HasSubstr("skipped: no drafter runs"));
    const CommandResult json = cupel_program({"inspect", bundled(name), "--json"});
    EXPECT_EQ(json.exit_code, 0) << json.err;
    const auto facts = nlohmann::json::parse(json.out);
    EXPECT_EQ(facts.at("used").at("tensors").get<int>() +
                  facts.at("skipped").at("no drafter runs").at("tensors").get<int>(),
              count);
    EXPECT_THAT(text.out, HasSubstr(facts.at("fingerprint").get<std::string>()));
  }
}

TEST(InspectCommand, TheFolderMayComeFromTheEnvironment) {
  const CommandResult named = cupel_program({"inspect", bundled("tiny-v4-0731"), "--json"});
  const CommandResult pinned = cupel_program(
      {"inspect", "--json"}, {.environment = {{test::kModelVariable, bundled("tiny-v4-0731")}}});
  EXPECT_EQ(pinned.exit_code, 0) << pinned.err;
  EXPECT_EQ(pinned.out, named.out);
  // A folder given by hand goes before.
  EXPECT_EQ(cupel_program({"inspect", bundled("tiny-v4-0731"), "--json"},
                          {.environment = {{test::kModelVariable, bundled("tiny-v4-preview")}}})
                .out,
            named.out);
  expect_refused(cupel_program({"inspect"}), {test::kModelVariable, "neither"});
  expect_refused(cupel_program({"inspect"}, {.environment = {{test::kModelVariable, "/nowhere"}}}),
                 {test::kModelVariable, "/nowhere"});
  expect_refused(cupel_program({"inspect", "/nowhere"}), {"/nowhere"});
}

TEST(InspectCommand, BrokenCheckpointsAreNamedAndLeftAlone) {
  {
    TinyCheckpoint tiny("tiny-v4-preview");
    const std::string shard = "model-00002-of-00003.safetensors";
    const std::string whole = read_file(tiny.path() / shard);
    tiny.replace(shard, whole.substr(0, whole.size() - 1000));
    expect_refused(cupel_program({"inspect", tiny.path()}), {(tiny.path() / shard).string()});
    expect_refused(cupel_program({"inspect", "--json", tiny.path()}), {shard});
    EXPECT_EQ(read_file(tiny.path() / shard).size(), whole.size() - 1000);
  }
  TinyCheckpoint tiny("tiny-v4-preview");
  tiny.remove_tensor("layers.0.ffn.experts.0.w1.scale");
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(tiny.path()), {});
  };
  const auto before = files();
  expect_refused(cupel_program({"inspect", tiny.path()}),
                 {tiny.path(), "layers.0.ffn.experts.0.w1.scale"});
  EXPECT_EQ(files(), before);
}

// More than a buffer of output, and less.
TEST(InspectCommand, AReportThatCannotBeWrittenIsNoSuccess) {
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", bundled("tiny-v4-preview"), "--json"},
      {"generate", "--model", bundled("tiny-v4-preview"), "--prompt", "x", "--max-new-tokens",
       "1"}};
  for (const auto& command : commands) {
    const CommandResult full = cupel_program(command, {.out = "/dev/full"});
    EXPECT_EQ(full.exit_code, 3);
    EXPECT_THAT(full.err, HasSubstr("cannot write"));
  }
}

}  // namespace
}  // namespace cupel
