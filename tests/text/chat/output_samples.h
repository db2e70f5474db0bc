// Outputs of a model, and what a stream of them says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cupel/text/chat/output_parser.h"

namespace cupel::test {

// What a client that only reads the stream has put together: neighbouring texts of a kind joined.
inline void append_joined(std::vector<OutputEvent>& all, const std::vector<OutputEvent>& events) {
  using Kind = OutputEvent::Kind;
  for (const OutputEvent& event : events) {
    const bool text = event.kind == Kind::kReasoning || event.kind == Kind::kContent ||
                      event.kind == Kind::kToolArguments;
    if (text && !all.empty() && all.back().kind == event.kind && all.back().index == event.index) {
      all.back().text += event.text;
    } else {
      all.push_back(event);
    }
  }
}

struct Streamed {
  std::vector<OutputEvent> events;
  ChatMessage message;
};

// `cut` gives the length of the next piece, >= 1.
template <typename Cut>
Streamed stream(std::string_view output, OutputParser::Options options, Cut cut) {
  OutputParser parser(options);
  Streamed result;
  while (!output.empty()) {
    const std::string_view piece = output.substr(0, cut());
    append_joined(result.events, parser.feed(piece));
    output.remove_prefix(piece.size());
  }
  append_joined(result.events, parser.finish());
  result.message = parser.message();
  return result;
}

inline std::string parameter(const std::string& key, const char* is_string,
                             const std::string& value) {
  return "<｜DSML｜parameter name=\"" + key + "\" string=\"" + is_string + "\">" + value +
         "</｜DSML｜parameter>\n";
}
inline std::string invoke(const std::string& name, const std::string& parameters) {
  return "<｜DSML｜invoke name=\"" + name + "\">\n" + parameters + "</｜DSML｜invoke>\n";
}
inline std::string block(const std::string& calls) {
  return "\n\n<｜DSML｜tool_calls>\n" + calls + "</｜DSML｜tool_calls>";
}

}  // namespace cupel::test
