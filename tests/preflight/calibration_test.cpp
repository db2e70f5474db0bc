#include "cupel/preflight/calibration.h"

#include <fstream>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::expect_input_error;

TEST(Calibration, ReadsPromptsAndNamesTheBrokenLine) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "prompts.jsonl";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write("{\"prompt\": \"a\\n\"}\n{\"prompt\": \"b\", \"note\": 1}\n");
  EXPECT_EQ(load_calibration_prompts(file), (std::vector<std::string>{"a\n", "b"}));
  for (const std::string broken : {"{\"prompt\": 3}", "{\"text\": \"a\"}", "plain", "", "[]",
                                   "{\"prompt\": \"\"}", "{\"prompt\": \"a\""}) {
    write("{\"prompt\": \"a\"}\n" + broken + "\n");
    expect_input_error([&] { load_calibration_prompts(file); }, {"prompts.jsonl:2", "prompt"});
  }
  write("");
  expect_input_error([&] { load_calibration_prompts(file); }, {"empty"});
  expect_input_error([&] { load_calibration_prompts(folder.path() / "no"); }, {"readable"});
}

}  // namespace
}  // namespace cupel
