#include "cupel/text/chat/output_events.h"

#include <utility>

namespace cupel {

using Kind = OutputEvent::Kind;

void OutputEvents::add_text(Kind kind, std::size_t index, std::string_view text) {
  if (text.empty()) return;
  if (!events_.empty() && events_.back().kind == kind && events_.back().index == index) {
    events_.back().text += text;
  } else {
    events_.push_back({.kind = kind, .index = index, .text = std::string(text)});
  }
}

void OutputEvents::reasoning(std::string_view text) {
  add_text(Kind::kReasoning, 0, text);
  message_.reasoning_content += text;
}

void OutputEvents::content(std::string_view text) {
  add_text(Kind::kContent, 0, text);
  message_.content += text;
}

void OutputEvents::begin_call(std::string name) {
  events_.push_back({.kind = Kind::kToolCallBegin, .index = calls_begun_++, .text = name});
  call_ = {.id = "", .name = std::move(name), .arguments = ""};
}

void OutputEvents::arguments(std::string_view text) {
  add_text(Kind::kToolArguments, calls_begun_ - 1, text);
  call_.arguments += text;
}

void OutputEvents::end_call() {
  events_.push_back({.kind = Kind::kToolCallEnd, .index = calls_begun_ - 1, .text = ""});
  message_.tool_calls.push_back(std::exchange(call_, {}));
}

void OutputEvents::abandon_call(std::string_view raw) {
  events_.push_back(
      {.kind = Kind::kToolCallAbandoned, .index = calls_begun_ - 1, .text = std::string(raw)});
  message_.content += raw;
  call_ = {};
}

std::vector<OutputEvent> OutputEvents::take() {
  return std::exchange(events_, {});
}

}  // namespace cupel
