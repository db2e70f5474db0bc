// Collects what an output means: events for a stream, and the message they make up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/text/chat/output_parser.h"

namespace cupel {

class OutputEvents {
 public:
  OutputEvents() { message_.role = ChatRole::kAssistant; }

  void reasoning(std::string_view text);
  void content(std::string_view text);
  void begin_call(std::string name);
  // The rest concerns the call that has begun.
  void arguments(std::string_view text);
  void end_call();
  void abandon_call(std::string_view raw);

  // The events since the last call; neighbours of a kind that carry text are one.
  std::vector<OutputEvent> take();
  const ChatMessage& message() const { return message_; }

 private:
  void add_text(OutputEvent::Kind kind, std::size_t index, std::string_view text);

  std::vector<OutputEvent> events_;
  ChatMessage message_;
  ToolCall call_;
  std::size_t calls_begun_ = 0;
};

}  // namespace cupel
