// The long texts of the prompt format. They are not part of the program: a checkpoint folder brings
// them in encoding/encoding_dsv4.py (spec sections 6.2, 6.3).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace cupel {

struct PromptProse {
  // With {dsml_token}, {thinking_start_token}, {thinking_end_token} and {tool_schemas} to fill in.
  std::optional<std::string> tools_template;
  // With {schema} to fill in. Without it a response format adds no text.
  std::optional<std::string> response_format;
  // Reasoning effort, spec section 6.3: text A is "max" of the preview and "high" of 0731, text B
  // is "max" of 0731.
  std::optional<std::string> effort_a;
  std::optional<std::string> effort_b;
};

// From the string constants of encoding_dsv4.py; nothing is executed. Constants that are not there
// stay empty. Throws InputError: text above 1 MiB, a constant whose SHA-256 is not the one of the
// spec (`where` and the variable are named).
PromptProse prose_from_encoder(std::string_view python, std::string_view where);

// The tools template out of the published test_output_1.txt, a prompt that contains it filled in.
// Throws InputError if the result has not both SHA-256 values of the spec.
std::string tools_template_from_example(std::string_view prompt, std::string_view where);

// The prose of a checkpoint folder; what its encoding/encoding_dsv4.py does not have (or if there
// is no such file) comes from `example`, the path of test_output_1.txt, which gives the tools
// template alone. Throws InputError as above.
PromptProse load_prompt_prose(const std::filesystem::path& checkpoint,
                              const std::filesystem::path& example);

}  // namespace cupel
