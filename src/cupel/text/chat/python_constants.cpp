#include "cupel/text/chat/python_constants.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// As Python reads source: every line ends in LF.
std::string universal_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

void append_code_point(std::string& out, std::uint32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  out.append(bytes.begin(), bytes.begin() + length);
}

class ConstantReader {
 public:
  ConstantReader(std::string source, std::string_view where)
      : source_(std::move(source)), where_(where) {}

  std::map<std::string, std::string> read() {
    while (!at_end()) {
      const std::size_t statement = position_;
      if (is_name_start(peek())) read_assignment();
      position_ = statement;
      skip_logical_line();
    }
    return std::move(constants_);
  }

 private:
  using Dictionary = std::map<std::string, std::string>;

  bool at_end() const { return position_ >= source_.size(); }
  char peek(std::size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }
  bool take(char c) {
    if (at_end() || peek() != c) return false;
    ++position_;
    return true;
  }
  [[noreturn]] void fail(std::size_t at, std::string_view expected) const {
    const auto line =
        1 + std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw InputError(std::string(where_) + " line " + std::to_string(line), expected, "none");
  }

  // --- passing over ---

  void skip_comment() {
    while (!at_end() && peek() != '\n') ++position_;
  }
  // Inside brackets a line end is white space.
  void skip_space(bool in_brackets) {
    while (!at_end()) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\f' || (in_brackets && c == '\n')) {
        ++position_;
      } else if (c == '\\' && peek(1) == '\n') {
        position_ += 2;
      } else if (c == '#') {
        skip_comment();
      } else {
        return;
      }
    }
  }
  // At a quote. Returns the text between the quotes. A backslash keeps a quote from ending the
  // string, raw or not.
  std::string_view skip_string() {
    const std::size_t start = position_;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const std::size_t quotes = triple ? 3 : 1;
    position_ += quotes;
    const std::size_t first = position_;
    for (; !at_end(); ++position_) {
      if (peek() == '\\') {
        ++position_;
      } else if (peek() == '\n' && !triple) {
        break;
      } else if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
        const auto text = std::string_view(source_).substr(first, position_ - first);
        position_ += quotes;
        return text;
      }
    }
    fail(start, "the end of the string that starts here");
  }
  void skip_logical_line() {
    const std::size_t start = position_;
    int depth = 0;
    while (!at_end()) {
      const char c = peek();
      if (c == '"' || c == '\'') {
        skip_string();
        continue;
      }
      if (c == '#') {
        skip_comment();
        continue;
      }
      if (c == '\\' && peek(1) == '\n') ++position_;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      ++position_;
      if (c == '\n' && depth == 0) return;
    }
    if (depth > 0) fail(start, "the end of the bracket that starts in the statement here");
  }

  // --- reading; "nothing" means that the statement is of another kind ---

  std::string read_name() {
    const std::size_t start = position_;
    while (!at_end() && is_name_part(peek())) ++position_;
    return source_.substr(start, position_ - start);
  }

  void read_assignment() {
    const std::string name = read_name();
    skip_space(false);
    if (take(':') && !skip_annotation()) return;
    if (!take('=') || peek() == '=') return;
    skip_space(false);
    if (peek() == '{') {
      const auto entries = read_dictionary();
      if (!entries || !at_statement_end()) return;
      for (const auto& [key, value] : *entries)
        constants_[fmt::format("{}[{}]", name, key)] = value;
    } else if (auto value = read_value(false, 0); value && at_statement_end()) {
      constants_[name] = std::move(*value);
    }
  }

  // Up to the "=".
  bool skip_annotation() {
    int depth = 0;
    for (; !at_end() && peek() != '\n'; ++position_) {
      if (peek() == '"' || peek() == '\'' || peek() == '#') return false;
      if (peek() == '[') ++depth;
      if (peek() == ']') --depth;
      if (peek() == '=' && depth == 0) return true;
    }
    return false;
  }

  bool at_statement_end() {
    skip_space(false);
    return at_end() || peek() == '\n' || peek() == ';';
  }

  std::optional<std::string> read_value(bool in_brackets, int depth) {
    skip_space(in_brackets);
    constexpr int kMaxDepth = 16;
    if (take('(')) {
      if (depth == kMaxDepth) return std::nullopt;
      auto value = read_value(true, depth + 1);
      skip_space(true);
      if (!value || !take(')')) return std::nullopt;
      return value;
    }
    std::string joined;
    bool found = false;
    while (true) {
      const auto literal = read_literal();
      if (!literal.has_value()) break;
      joined += *literal;
      found = true;
      skip_space(in_brackets);
    }
    if (found) return joined;
    if (!is_name_start(peek())) return std::nullopt;
    const auto known = constants_.find(read_name());
    if (known == constants_.end()) return std::nullopt;
    return known->second;
  }

  std::optional<Dictionary> read_dictionary() {
    take('{');
    Dictionary entries;
    while (true) {
      skip_space(true);
      if (take('}')) return entries;
      auto key = read_value(true, 0);
      skip_space(true);
      if (!key || !take(':')) return std::nullopt;
      auto value = read_value(true, 0);
      if (!value) return std::nullopt;
      entries[std::move(*key)] = std::move(*value);
      skip_space(true);
      if (!take(',') && peek() != '}') return std::nullopt;
    }
  }

  // One literal with its prefix; nothing, and the position unchanged, if there is none.
  std::optional<std::string> read_literal() {
    const std::size_t start = position_;
    bool raw = false;
    bool plain = true;
    while (is_name_start(peek())) {
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(peek())));
      raw = raw || c == 'r';
      plain = plain && (c == 'r' || c == 'u');
      ++position_;
    }
    if (plain && (peek() == '"' || peek() == '\'')) {
      const std::string_view text = skip_string();
      if (raw) return std::string(text);
      if (auto value = unescape(text)) return value;
    }
    position_ = start;
    return std::nullopt;
  }

  static std::optional<std::string> unescape(std::string_view text) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      if (const auto at = kLetters.find(c); at != std::string_view::npos) {
        out += kMeanings[at];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const std::string_view number = text.substr(i + 1, digits);
        std::uint32_t value = 0;
        const auto end = std::from_chars(number.data(), number.data() + number.size(), value, 16);
        const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
        if (number.size() != digits || end.ptr != number.data() + digits || value > 0x10FFFF ||
            surrogate) {
          return std::nullopt;
        }
        append_code_point(out, value);
        i += digits;
      } else if (c >= '0' && c <= '7') {
        std::uint32_t value = 0;
        std::size_t digits = 0;
        while (digits < 3 && i + digits < text.size() && text[i + digits] >= '0' &&
               text[i + digits] <= '7') {
          value = value * 8 + static_cast<std::uint32_t>(text[i + digits++] - '0');
        }
        append_code_point(out, value);
        i += digits - 1;
      } else if (c == 'N') {
        return std::nullopt;  // a character by its Unicode name
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::string source_;
  std::string_view where_;
  std::size_t position_ = 0;
  std::map<std::string, std::string> constants_;
};

}  // namespace

std::map<std::string, std::string> python_string_constants(std::string_view source,
                                                           std::string_view where) {
  return ConstantReader(universal_newlines(source), where).read();
}

}  // namespace cupel
