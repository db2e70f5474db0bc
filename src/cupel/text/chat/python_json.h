// JSON text as Python's json.dumps(value, ensure_ascii=False) writes it: the form that prompts use.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/text/chat/message.h"

namespace cupel {

// Separators ", " and ": ", keys in order, non-ASCII kept, floats as Python's repr. Recursive.
std::string python_json(const ChatJson& value);
// A string with its quotes. Invalid UTF-8 becomes U+FFFD.
std::string python_json_string(std::string_view text);

// Whether the text is one JSON value. The library alone takes a NUL for the end of the text.
bool is_json(std::string_view text);

struct JsonMember {
  std::string key;
  bool is_string = false;
  std::string value;  // of a string its characters, else its JSON text
  bool operator==(const JsonMember&) const = default;
};
// The members of an object given as JSON text, in order; of equal keys the last value at the place
// of the first. Nothing if the text is not a JSON object. Integers of any size are kept; nesting
// costs no stack.
std::optional<std::vector<JsonMember>> json_members(std::string_view text);

}  // namespace cupel
