#include "cupel/assay/report/printable.h"

#include <utf8proc.h>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_bidirectional_control(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

bool is_mark(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_MC || c == 0x200D;
}

// U+2400 + value, for value below 0x40.
void append_picture(std::string& out, unsigned value) {
  out += "\xE2\x90";
  out += static_cast<char>(0x80U + value);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Sequence s = decode_utf8(text, i);
    const char32_t c = s.code_point;
    const bool hidden = s.kind != Utf8Sequence::Kind::kValid || (c >= 0x80 && c < 0xA0) ||
                        is_bidirectional_control(c) || c == 0xFFFE || c == 0xFFFF;
    if (hidden) {
      out += kReplacement;
    } else if (c < 0x20 && c != '\t' && c != '\n') {
      append_picture(out, static_cast<unsigned>(c));
    } else if (c == 0x7F) {
      append_picture(out, 0x21);
    } else {
      out += text.substr(i, s.length);
    }
    i += s.length;
  }
  return out;
}

std::string_view first_character(std::string_view text) {
  if (text.empty()) return text;
  std::size_t end = decode_utf8(text, 0).length;
  while (end < text.size()) {
    const Utf8Sequence next = decode_utf8(text, end);
    if (next.kind != Utf8Sequence::Kind::kValid || !is_mark(next.code_point)) break;
    end += next.length;
  }
  return text.substr(0, end);
}

}  // namespace cupel
