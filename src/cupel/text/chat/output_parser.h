// The model's output to reasoning, content and tool calls, while it is being generated (spec
// section 6.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/text/chat/encoding.h"
#include "cupel/text/chat/message.h"

namespace cupel {

struct OutputEvent {
  enum class Kind : std::uint8_t {
    kReasoning,      // text: more reasoning
    kContent,        // text: more content
    kToolCallBegin,  // text: the name; index counts from 0
    kToolArguments,  // text: more of the JSON text of the arguments
    kToolCallEnd,    // the arguments are complete, and are JSON
    // The call turned out malformed, or the output ended inside it. Its arguments so far are a
    // start of a JSON object only. text: all the model wrote for it, which counts as content.
    kToolCallAbandoned,
  };
  Kind kind;
  std::size_t index = 0;  // of a tool call; those begun, the abandoned ones included
  std::string text;
  bool operator==(const OutputEvent&) const = default;
};

// Feed the bytes of the generated tokens, split anywhere. All text of the events is valid UTF-8
// (an ill-formed sequence becomes U+FFFD); joined over the events of a kind it does not depend on
// the split. Text is held back only while it may belong to a tag or to an unfinished character, and
// an argument that is no string until it is complete. Time linear in the output.
//
// Thinking mode: all up to </think> is reasoning, tool calls too. After that, and in chat mode from
// the start: content, in which a block of tool calls may begin at any place (the empty line
// before it belongs to it). White space between the tags is free. Everything else that deviates
// from the format is returned as content from the start of the call or block on, and the parser
// goes on looking for a block after it. Deviations: an unknown tag, text between tags, a missing
// attribute or end tag, an empty function name, a parameter given twice. A value with
// string="false" that is not JSON is taken as a string. Text after "<｜end▁of▁sentence｜>" is
// ignored.
class OutputParser {
 public:
  struct Options {
    ThinkingMode mode = ThinkingMode::kChat;
    bool tool_calls = true;  // false: a block of tool calls is content like any other text
  };
  explicit OutputParser(Options options);
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;
  ~OutputParser();

  std::vector<OutputEvent> feed(std::string_view bytes);
  // The output has ended: what was held back. Nothing may be fed after it.
  std::vector<OutputEvent> finish();

  // The assistant message that the events so far make up; abandoned calls are in its content only.
  // Ids of calls are empty.
  const ChatMessage& message() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A complete output at once.
ChatMessage parse_output(std::string_view bytes, OutputParser::Options options);

}  // namespace cupel
