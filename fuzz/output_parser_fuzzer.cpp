// Arbitrary bytes as the output of a model: the split does not matter, the arguments of calls are
// JSON, all text is valid UTF-8, and without calls none is lost.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "cupel/text/chat/output_parser.h"
#include "cupel/text/chat/python_json.h"
#include "cupel/text/chat/special_tokens.h"
#include "cupel/text/utf8.h"

namespace {

// A crash is what the fuzzer looks for: a broken promise ends in one too.
void require(bool holds) {
  if (!holds) __builtin_trap();
}

void require_valid(const std::string& text) {
  require(cupel::valid_utf8_prefix(text) == text);
}

}  // namespace

// The first byte says in which mode, the second how the stream is cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  cupel::OutputParser::Options options;
  if ((data[0] & 1) != 0) options.mode = cupel::ThinkingMode::kThinking;
  options.tool_calls = (data[0] & 2) == 0;
  const std::string_view output(reinterpret_cast<const char*>(data) + 2, size - 2);

  const cupel::ChatMessage whole = cupel::parse_output(output, options);
  cupel::OutputParser parser(options);
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t length = 1 + (data[1] + at) % 7;
    for (const cupel::OutputEvent& event : parser.feed(output.substr(at, length))) {
      require_valid(event.text);
    }
    at += length;
  }
  for (const cupel::OutputEvent& event : parser.finish()) require_valid(event.text);
  require(parser.message() == whole);

  for (const cupel::ToolCall& call : whole.tool_calls) {
    require(!call.name.empty() && cupel::is_json(call.arguments));
  }
  if (whole.tool_calls.empty()) {
    const std::string text = cupel::to_valid_utf8(output);
    std::string kept = whole.reasoning_content;
    const bool thought = options.mode == cupel::ThinkingMode::kThinking;
    if (thought && text.substr(kept.size()).starts_with(cupel::kEndThinkText)) {
      kept += cupel::kEndThinkText;
    }
    kept += whole.content;
    require(kept == text.substr(0, text.find(cupel::kEosText)));
  }
  return 0;
}
