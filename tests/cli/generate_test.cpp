#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using testing::HasSubstr;

using Words = std::vector<std::string>;

constexpr const char* kPrompt =
    "Question: Ivy has 5 apples. Ivy buys 3 more apples. How many apples does Ivy have "
    "now?\nAnswer:";

CommandResult generate(const Words& more, const std::string& prompt = kPrompt) {
  Words words = {"generate", "--model", bundled("tiny-v4-0731"), "--prompt", prompt};
  words.insert(words.end(), more.begin(), more.end());
  CommandResult result = cupel_program(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

TEST(GenerateCommand, TheTextDependsOnNoSettingThatMayNotMatter) {
  const CommandResult first = generate({"--max-new-tokens", "40"});
  EXPECT_TRUE(first.out.starts_with(" 5 + 3 = 8.\n#### 8\n")) << first.out;
  EXPECT_EQ(first.err, "");
  EXPECT_EQ(generate({"--max-new-tokens", "40", "--threads", "1", "--prefill-chunk", "3", "--isa",
                      "avx2", "--seed", "9"})
                .out,
            first.out);
  // Fewer tokens are the beginning of more.
  const std::string cut = generate({"--max-new-tokens", "4"}).out;
  EXPECT_LT(cut.size(), first.out.size());
  EXPECT_TRUE(first.out.starts_with(cut.substr(0, cut.size() - 1)));
}

TEST(GenerateCommand, StopStringsEndTheTextAndAreNotPartOfIt) {
  EXPECT_EQ(generate({"--stop", "\n"}).out, " 5 + 3 = 8.\n");
  EXPECT_EQ(generate({"--stop", "never", "--stop", "= 8"}).out, " 5 + 3 \n");
  // As it is: brackets and commas make no list of it.
  EXPECT_THAT(generate({"--stop", "[ 5 + 3,#]", "--max-new-tokens", "12"}).out,
              HasSubstr(" 5 + 3 = 8.\n####"));
}

TEST(GenerateCommand, ASchemaGivesAValueOfIt) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "schema.json";
  std::ofstream(file)
      << R"({"type":"object","properties":{"answer":{"type":"integer"}},"required":["answer"]})";
  const auto value =
      nlohmann::json::parse(generate({"--json-schema", file, "--max-new-tokens", "40"}).out);
  EXPECT_TRUE(value.at("answer").is_number_integer());
  for (const auto& [schema, part] : std::vector<std::pair<std::string, std::string>>{
           {"{", "JSON"},
           {R"({"multipleOf":2})", "multipleOf"},
           {R"({"minLength":90})", "max_new_tokens"}}) {
    std::ofstream(file) << schema;
    const CommandResult refused =
        cupel_program({"generate", "--model", bundled("tiny-v4-0731"), "--prompt", "x",
                       "--max-new-tokens", "4", "--json-schema", file});
    EXPECT_EQ(refused.exit_code, 4);
    EXPECT_THAT(refused.err, HasSubstr(part));
  }
}

TEST(GenerateCommand, BosIsPartOfThePromptUnlessRefused) {
  const Words stats = {"--max-new-tokens", "2", "--stats"};
  const std::string with = generate(stats).err;
  EXPECT_THAT(with, HasSubstr("26 prompt tokens"));
  EXPECT_THAT(with, HasSubstr("2 new tokens"));
  EXPECT_THAT(generate({"--max-new-tokens", "2", "--stats", "--no-bos"}).err,
              HasSubstr("25 prompt tokens"));
  // Special tokens are recognised in the text.
  EXPECT_THAT(
      generate({"--max-new-tokens", "2", "--stats", "--no-bos"}, "<｜begin▁of▁sentence｜>5").err,
      HasSubstr("2 prompt tokens"));
}

TEST(GenerateCommand, ThePromptMayLookLikeAFlag) {
  EXPECT_THAT(generate({"--max-new-tokens", "1", "--stats"}, "--stop").err,
              HasSubstr("1 new tokens"));
}

TEST(GenerateCommand, TheSeedDecidesAboveTemperature0) {
  const auto text = [](const char* seed) {
    return generate({"--temperature", "2", "--max-new-tokens", "20", "--seed", seed}).out;
  };
  EXPECT_EQ(text("1"), text("1"));
  EXPECT_NE(text("1"), text("2"));
}

TEST(GenerateCommand, BackendsAndTheirNamesInSglang) {
  for (const char* name : {"reference", "packed", "unified"}) {
    const CommandResult result = generate({"--attention-backend", name, "--stop", "\n"});
    EXPECT_EQ(result.out, " 5 + 3 = 8.\n") << name;
    EXPECT_EQ(result.err, "");
  }
  const std::vector<std::pair<std::string, std::string>> names = {{"triton", "packed"},
                                                                  {"unified_kv_triton", "unified"}};
  for (const auto& [theirs, ours] : names) {
    const CommandResult result = generate({"--attention-backend", theirs, "--stop", "\n"});
    EXPECT_EQ(result.out, " 5 + 3 = 8.\n");
    EXPECT_EQ(result.err, "note: attention backend " + theirs + " is Cupel's " + ours + "\n");
  }
}

TEST(GenerateCommand, TheModelMayComeFromTheEnvironment) {
  const CommandResult result =
      cupel_program({"generate", "--prompt", kPrompt, "--stop", "\n"},
                    {.environment = {{test::kModelVariable, bundled("tiny-v4-0731")}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, " 5 + 3 = 8.\n");
}

}  // namespace
}  // namespace cupel
