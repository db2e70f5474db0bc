// UTF-8 by the Unicode standard's table of well-formed sequences (chapter 3, table 3-7): overlong
// forms, surrogates, values above U+10FFFF and truncated sequences are ill-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cupel {

struct Utf8Sequence {
  enum class Kind : std::uint8_t {
    kValid,
    kInvalid,     // no continuation can make these bytes valid
    kUnfinished,  // the text ends inside a sequence that more bytes could complete
  };
  Kind kind;
  // Bytes of the sequence, >= 1. Of an ill-formed one: its longest start that some valid sequence
  // also has, so that one U+FFFD stands for it (the standard's "maximal subpart").
  std::uint8_t length;
  char32_t code_point;  // only if valid
};

// The sequence that starts at text[position]; position < text.size().
Utf8Sequence decode_utf8(std::string_view text, std::size_t position);

// The longest prefix that is valid UTF-8.
std::string_view valid_utf8_prefix(std::string_view text);

// Everything but an unfinished sequence at the end: what a stream may send now, while the rest of
// the sequence may still come. Invalid bytes elsewhere stay in: no later byte can repair them.
std::string_view complete_utf8_prefix(std::string_view text);

// Each ill-formed maximal subpart becomes one U+FFFD, as in Python's errors="replace". Splitting a
// text by complete_utf8_prefix first does not change the result.
std::string to_valid_utf8(std::string_view text);

}  // namespace cupel
