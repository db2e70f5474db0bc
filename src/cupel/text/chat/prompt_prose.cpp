#include "cupel/text/chat/prompt_prose.h"

#include <map>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/sha256.h"
#include "cupel/text/chat/python_constants.h"
#include "cupel/text/chat/special_tokens.h"
#include "cupel/text/chat/template_text.h"

namespace cupel {
namespace {

// Spec sections 6.2, 6.3.
constexpr std::string_view kToolsTemplateHash =
    "09b7269daaddbeaf11a3ed55c07b1846c35162b841d8b4301bbe0449879d1fd8";
constexpr std::string_view kToolsFilledHash =  // with no tool
    "c7d3159308f7d076bee8974ece110fda1f92f6e577306e602ba2b466b4dcd904";
constexpr std::string_view kResponseFormatHash =
    "012f31fcc1338bdfe25b132eaf56ab020ee75ab8e649f37b30b8e5f544fb17a5";
constexpr std::string_view kEffortAHash =
    "f7a24f3b3050d4a83781e9b755b316aae2ec1d9dc87562541d90bcb04d7350f7";
constexpr std::string_view kEffortBHash =
    "53fb31b8392ec5b4a926481943efc67636748f137c1a49d493a7af4d4fa55d2c";

void check_hash(std::string_view text, std::string_view expected, const std::string& where) {
  const std::string found = sha256_hex(text);
  if (found != expected) {
    throw InputError(where, "the published text, SHA-256 " + std::string(expected),
                     "SHA-256 " + found);
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

PromptProse prose_from_encoder(std::string_view python, std::string_view where) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  if (python.size() > kMaxBytes) {
    throw InputError(where, "at most 1 MiB", std::to_string(python.size()) + " bytes");
  }
  const std::map<std::string, std::string> constants = python_string_constants(python, where);
  const auto checked = [&](const std::string& name,
                           std::string_view hash) -> std::optional<std::string> {
    const auto found = constants.find(name);
    if (found == constants.end()) return std::nullopt;
    check_hash(found->second, hash, std::string(where) + " " + name);
    return found->second;
  };

  PromptProse prose;
  prose.tools_template = checked("TOOLS_TEMPLATE", kToolsTemplateHash);
  prose.response_format = checked("response_format_template", kResponseFormatHash);
  prose.effort_a = checked("REASONING_EFFORT_PROMPTS[high]", kEffortAHash);
  if (!prose.effort_a) prose.effort_a = checked("REASONING_EFFORT_MAX", kEffortAHash);
  prose.effort_b = checked("REASONING_EFFORT_PROMPTS[max]", kEffortBHash);
  return prose;
}

std::string tools_template_from_example(std::string_view prompt, std::string_view where) {
  // The block stands between the system text and the user's turn; the tools between these lines.
  constexpr std::string_view kBlock = "## Tools\n";
  constexpr std::string_view kBeforeTools = "### Available Tool Schemas\n\n";
  constexpr std::string_view kAfterTools = "\n\nYou MUST";
  constexpr std::string_view kBlank = "{tool_schemas}";
  const auto find = [&](std::string_view text, std::string_view wanted) {
    const std::size_t at = text.find(wanted);
    if (at == std::string_view::npos) throw InputError(where, wanted, "none");
    return at;
  };
  std::string_view block = prompt.substr(find(prompt, kBlock));
  block = block.substr(0, find(block, kUserText));
  const std::size_t tools = find(block, kBeforeTools) + kBeforeTools.size();
  const std::string_view rest = block.substr(tools + find(block.substr(tools), kAfterTools));

  std::string text = std::string(block.substr(0, tools)) + std::string(kBlank) + std::string(rest);
  replace_all(text, kDsmlText, "{dsml_token}");
  replace_all(text, kEndThinkText, "{thinking_end_token}");
  replace_all(text, kThinkText, "{thinking_start_token}");
  check_hash(text, kToolsTemplateHash, std::string(where) + " tools template");
  check_hash(fill_tools_template(text, ""), kToolsFilledHash,
             std::string(where) + " tools template without tools");
  return text;
}

PromptProse load_prompt_prose(const std::filesystem::path& checkpoint,
                              const std::filesystem::path& example) {
  const std::filesystem::path encoder = checkpoint / "encoding" / "encoding_dsv4.py";
  PromptProse prose;
  if (std::filesystem::exists(encoder)) {
    prose = prose_from_encoder(read_file(encoder), encoder.string());
  }
  if (!prose.tools_template) {
    prose.tools_template = tools_template_from_example(read_file(example), example.string());
  }
  return prose;
}

}  // namespace cupel
