#include "cupel/text/chat/prompt_prose.h"

#include <fstream>

#include "text/chat/chat_samples.h"
#include <gmock/gmock.h>

#include "cupel/base/error.h"
#include "cupel/base/sha256.h"
#include "cupel/text/chat/template_text.h"

namespace cupel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string example() {
  return read_file(test::encoding_file("test_output_1.txt"));
}
std::string tools_template() {
  return tools_template_from_example(example(), "example");
}

TEST(PromptProse, TheExampleGivesTheToolsTemplate) {
  EXPECT_EQ(tools_template().size(), 1075u);
  EXPECT_EQ(sha256_hex(tools_template()),
            "09b7269daaddbeaf11a3ed55c07b1846c35162b841d8b4301bbe0449879d1fd8");
  const std::string filled = fill_tools_template(tools_template(), "");
  EXPECT_EQ(filled.size(), 989u);
  EXPECT_EQ(sha256_hex(filled), "c7d3159308f7d076bee8974ece110fda1f92f6e577306e602ba2b466b4dcd904");
}

TEST(PromptProse, AnExampleThatWasChangedIsRefused) {
  std::string changed = example();
  changed.replace(changed.find("helpful assistant"), 7, "useless");  // not of the template
  EXPECT_EQ(tools_template_from_example(changed, "example"), tools_template());
  changed.replace(changed.find("You MUST"), 8, "You must");
  EXPECT_THAT([&] { tools_template_from_example(changed, "example.txt"); },
              ThrowsMessage<InputError>(HasSubstr("example.txt")));
  EXPECT_THAT([] { tools_template_from_example("Hello", "example.txt"); },
              ThrowsMessage<InputError>(HasSubstr("expected ## Tools")));
}

TEST(PromptProse, TheEncodersConstantsAreReadAndChecked) {
  const std::string python = "TOOLS_TEMPLATE = \"\"\"" + tools_template() + "\"\"\"\n";
  const PromptProse prose = prose_from_encoder(python, "encoder");
  EXPECT_EQ(prose.tools_template, tools_template());
  EXPECT_EQ(prose.response_format, std::nullopt);
  EXPECT_EQ(prose.effort_a, std::nullopt);
  EXPECT_EQ(prose.effort_b, std::nullopt);
  // Every constant is held against its hash.
  for (const char* statement :
       {"TOOLS_TEMPLATE = 'x'", "response_format_template: str = 'x'", "REASONING_EFFORT_MAX = 'x'",
        "REASONING_EFFORT_PROMPTS = {'high': 'x'}", "REASONING_EFFORT_PROMPTS = {'max': 'x'}"}) {
    EXPECT_THAT([&] { prose_from_encoder(statement, "encoder.py"); },
                ThrowsMessage<InputError>(
                    AllOf(HasSubstr("encoder.py"), HasSubstr("found SHA-256 2d711642b726b044"))))
        << statement;
  }
}

TEST(PromptProse, AnEncoderHasALimitedSize) {
  EXPECT_THAT([] { prose_from_encoder(std::string((1 << 20) + 1, '#'), "encoder.py"); },
              ThrowsMessage<InputError>(HasSubstr("encoder.py: expected at most 1 MiB")));
}

TEST(PromptProse, AFolderWithoutAnEncoderFallsBackToTheExample) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "prompt_prose_test";
  std::filesystem::create_directories(folder / "encoding");
  std::filesystem::remove(folder / "encoding/encoding_dsv4.py");
  const auto load = [&] {
    return load_prompt_prose(folder, test::encoding_file("test_output_1.txt"));
  };
  EXPECT_EQ(load().tools_template, tools_template());
  std::ofstream(folder / "encoding/encoding_dsv4.py") << "other = 'x'\n";
  EXPECT_EQ(load().tools_template, tools_template());
  std::ofstream(folder / "encoding/encoding_dsv4.py") << "TOOLS_TEMPLATE = 'x'\n";
  EXPECT_THAT(load, ThrowsMessage<InputError>(HasSubstr("encoding_dsv4.py TOOLS_TEMPLATE")));
  std::filesystem::remove_all(folder);
}

TEST(FillTemplate, FillsOnceAndLeavesOtherBraces) {
  EXPECT_EQ(fill_template("{a} {b} {{a} {c} { {a", {{"a", "{b}"}, {"b", "x"}}),
            "{b} x {{b} {c} { {a");
  EXPECT_EQ(fill_template("", {}), "");
}

}  // namespace
}  // namespace cupel
