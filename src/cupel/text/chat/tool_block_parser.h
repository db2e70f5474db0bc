// A block of tool calls in DSML, from behind "<｜DSML｜tool_calls>" (spec sections 6.2, 6.4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "cupel/text/chat/output_events.h"
#include "cupel/text/chat/text_buffer.h"

namespace cupel {

class ToolBlockParser {
 public:
  enum class Status : std::uint8_t {
    kOpen,    // more text is needed
    kClosed,  // the end tag has been taken
    // Not a block, or no longer one. What was taken of the call, or of the block before its first
    // call, has gone to the events as content; the rest is still in the buffer.
    kBroken,
  };

  // `opening`: the text that opened the block.
  void begin(std::string_view opening);
  Status parse(TextBuffer& input, OutputEvents& events);
  // The output has ended inside the block.
  void end(TextBuffer& input, OutputEvents& events);

 private:
  enum class State : std::uint8_t {
    kBeforeCalls,
    kBetweenCalls,
    kName,
    kBetweenParameters,
    kParameterName,
    kStringValue,
    kJsonValue,
  };
  // How one step went.
  enum class Step : std::uint8_t { kDone, kNeedsMore, kClosed, kBroken };

  Step step(TextBuffer& input, OutputEvents& events);
  Step between_tags(TextBuffer& input, OutputEvents& events);
  Step name(TextBuffer& input, OutputEvents& events);
  Step parameter_name(TextBuffer& input, OutputEvents& events);
  Step string_value(TextBuffer& input, OutputEvents& events);
  Step json_value(TextBuffer& input, OutputEvents& events);

  bool in_call() const { return state_ > State::kName; }
  void enter(State state);
  std::string_view take(TextBuffer& input, std::size_t length);
  void write_key(OutputEvents& events);
  void abandon(OutputEvents& events);

  State state_ = State::kBeforeCalls;
  std::string raw_;           // taken since the block began or the last call ended
  std::size_t searched_ = 0;  // bytes of the rest that need not be looked at again
  std::string key_;
  std::unordered_set<std::string> keys_;  // of the call's parameters so far
};

}  // namespace cupel
