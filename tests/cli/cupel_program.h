// The program under test.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "support/run_command.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel::test {

constexpr const char* kModelVariable = "DEEPSEEK_V4_FP4_MODEL_PATH";

inline std::string bundled(const std::string& name) {
  return std::string(CUPEL_SOURCE_DIR) + "/models/" + name;
}

// Runs cupel with these words. The variable that names a checkpoint is set only if `options` does.
inline CommandResult cupel_program(std::vector<std::string> words, CommandOptions options = {}) {
  words.insert(words.begin(), CUPEL_PROGRAM);
  options.environment.try_emplace(kModelVariable, std::nullopt);
  return run_command(words, options);
}

// Exit code 4, every part on standard error, nothing on standard output.
inline void expect_refused(const CommandResult& result, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& part : parts) EXPECT_THAT(result.err, testing::HasSubstr(part));
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace cupel::test
