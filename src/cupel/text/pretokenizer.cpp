#include "cupel/text/pretokenizer.h"

#include <cstdint>

#include <utf8proc.h>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

// What the patterns ask of a character, as bits.
enum Class : std::uint8_t {
  kLetter = 1,  // \p{L}
  kMark = 2,    // \p{M}
  kNumber = 4,  // \p{N}
  kSymbol = 8,  // \p{P} or \p{S}
  kSpace = 16,  // \s
  kNewline = 32,
};

struct Character {
  char32_t code_point = 0;
  std::uint8_t classes = 0;
  std::uint8_t length = 0;

  bool is(int mask) const { return (classes & mask) != 0; }
};

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_ideograph_or_kana(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

bool is_ascii_letter(char32_t c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

std::uint8_t classify(char32_t c) {
  int classes = is_white_space(c) ? kSpace : 0;
  if (c == '\r' || c == '\n') classes |= kNewline;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      classes |= kLetter;
      break;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      classes |= kMark;
      break;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      classes |= kNumber;
      break;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      classes |= kSymbol;
      break;
    default:
      break;
  }
  return static_cast<std::uint8_t>(classes);
}

// The character at a position of valid UTF-8; past the end, one of no class and length 0.
Character character_at(std::string_view text, std::size_t position) {
  if (position >= text.size()) return {};
  const Utf8Sequence sequence = decode_utf8(text, position);
  return {sequence.code_point, classify(sequence.code_point), sequence.length};
}

// The end of the run of characters of `mask` that starts at `position`.
std::size_t end_of_run(std::string_view text, std::size_t position, int mask) {
  for (;;) {
    const Character c = character_at(text, position);
    if (!c.is(mask)) return position;
    position += c.length;
  }
}

class Splitter {
 public:
  explicit Splitter(std::vector<std::string_view>& pieces) : pieces_(pieces) {}

  // First split, \p{N}{1,3}. The later splits match nothing in a piece of numbers.
  void split_numbers(std::string_view text) {
    std::size_t rest = 0;  // start of what lies between two matches
    std::size_t position = 0;
    while (position < text.size()) {
      Character c = character_at(text, position);
      if (!c.is(kNumber)) {
        position += c.length;
        continue;
      }
      split_ideographs(text.substr(rest, position - rest));
      rest = position;
      for (int count = 0; count < 3 && c.is(kNumber); ++count) {
        position += c.length;
        c = character_at(text, position);
      }
      add(text, rest, position);
      rest = position;
    }
    split_ideographs(text.substr(rest));
  }

 private:
  void add(std::string_view text, std::size_t begin, std::size_t end) {
    if (begin < end) pieces_.push_back(text.substr(begin, end - begin));
  }

  // Second split. The third runs inside its matches too: kana include marks and symbols.
  void split_ideographs(std::string_view text) {
    std::size_t begin = 0;
    std::size_t position = 0;
    bool inside = false;
    while (position < text.size()) {
      const Utf8Sequence sequence = decode_utf8(text, position);
      const bool now = is_ideograph_or_kana(sequence.code_point);
      if (now != inside) {
        split_words(text.substr(begin, position - begin));
        begin = position;
        inside = now;
      }
      position += sequence.length;
    }
    split_words(text.substr(begin));
  }

  // Third split. Characters that no alternative matches stay together between two matches.
  void split_words(std::string_view text) {
    std::size_t rest = 0;
    std::size_t position = 0;
    while (position < text.size()) {
      const std::size_t end = match_word(text, position);
      if (end == position) {
        position += character_at(text, position).length;
        continue;
      }
      add(text, rest, position);
      add(text, position, end);
      rest = position = end;
    }
    add(text, rest, text.size());
  }

  // The end of the match that starts at `position`, or `position`. The letters are those of the
  // spec's alternatives; the first that matches wins.
  static std::size_t match_word(std::string_view text, std::size_t position) {
    const Character first = character_at(text, position);
    const std::size_t after_first = position + first.length;
    const Character second = character_at(text, after_first);

    // (A) ASCII punctuation, then ASCII letters.
    if (first.code_point < 0x80 && first.is(kSymbol) && is_ascii_letter(second.code_point)) {
      std::size_t end = after_first;
      while (end < text.size() && is_ascii_letter(static_cast<std::uint8_t>(text[end]))) ++end;
      return end;
    }
    // (B) Letters and marks, with at most one character of another kind before them.
    if (first.is(kLetter | kMark)) return end_of_run(text, after_first, kLetter | kMark);
    if (!first.is(kNewline | kSymbol) && second.is(kLetter | kMark)) {
      return end_of_run(text, after_first, kLetter | kMark);
    }
    // (C) Punctuation with at most one space before it, then the line ends that follow it.
    if (first.is(kSymbol) || (first.code_point == ' ' && second.is(kSymbol))) {
      return end_of_run(text, end_of_run(text, after_first, kSymbol), kNewline);
    }
    return first.is(kSpace) ? match_space(text, position) : position;
  }

  // (D) to (F), at a whitespace character.
  static std::size_t match_space(std::string_view text, std::size_t position) {
    std::size_t end = position;
    std::size_t last = position;           // start of the run's last character
    std::size_t after_newline = position;  // end of the run's last CR or LF
    for (Character c = character_at(text, end); c.is(kSpace); c = character_at(text, end)) {
      last = end;
      end += c.length;
      if (c.is(kNewline)) after_newline = end;
    }
    // (D) \s* gives back until a CR or LF follows: the match ends behind the last one.
    if (after_newline != position) return after_newline;
    // (E) Before a word the last space is left to it, unless it is the only one (F). Text ends
    // where the piece of the earlier splits ends.
    return end == text.size() || last == position ? end : last;
  }

  std::vector<std::string_view>& pieces_;
};

}  // namespace

std::vector<std::string_view> pretokenize(std::string_view text) {
  std::vector<std::string_view> pieces;
  Splitter splitter(pieces);
  while (!text.empty()) {
    const std::string_view valid = valid_utf8_prefix(text);
    if (!valid.empty()) splitter.split_numbers(valid);
    text.remove_prefix(valid.size());
    if (text.empty()) break;
    pieces.push_back(text.substr(0, 1));
    text.remove_prefix(1);
  }
  return pieces;
}

}  // namespace cupel
