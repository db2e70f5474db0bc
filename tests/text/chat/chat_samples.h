// Conversations for the tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cupel/base/file.h"
#include "cupel/text/chat/encoding.h"
#include "cupel/text/chat/openai_messages.h"

namespace cupel::test {

inline std::filesystem::path encoding_file(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "data/v4-flash/encoding" / name;
}

// The published tools template and made-up texts for what the published data does not contain.
inline PromptProse sample_prose() {
  return {.tools_template = tools_template_from_example(
              read_file(encoding_file("test_output_1.txt")), "test_output_1.txt"),
          .response_format = "## Format\n\nFollow {schema}",
          .effort_a = "Text A.\n\n",
          .effort_b = "Text B.\n\n"};
}

inline std::vector<ChatMessage> messages(const std::string& json) {
  return messages_from_openai(parse_chat_json(json, "test"), "messages");
}

}  // namespace cupel::test
