#include "cupel/text/constraint/pattern.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr std::uint32_t kUnbounded = Grammar::kUnbounded;
constexpr int kMaxDepth = 64;

const CharSet kDigit{{'0', '9'}};
const CharSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharSet kSpace{{0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680},
                     {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                     {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharSet kLineEnd{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

// An expression and how many states it comes to when counts are written out.
struct Piece {
  ExprId expr;
  std::size_t states;
};

class PatternParser {
 public:
  PatternParser(JsonText& json, std::string_view pattern, std::string_view where)
      : json_(json), g_(json.grammar()), text_(code_points(pattern)), where_(where) {}

  ExprId parse() {
    const ExprId any = g_.repeat(json_.any_usual_character(), 0, kUnbounded);
    std::vector<ExprId> alternatives;
    do {
      std::vector<ExprId> parts;
      if (!take('^')) parts.push_back(any);
      parts.push_back(terms(0).expr);
      if (!take('$')) parts.push_back(any);
      alternatives.push_back(g_.sequence(parts));
    } while (take('|'));
    if (at_ < text_.size()) refuse("an end of the pattern or |");
    return g_.choice(alternatives);
  }

 private:
  [[noreturn]] void refuse(std::string_view expected, std::string_view found = {}) const {
    const std::string here = !found.empty() ? std::string(found)
                             : at_ < text_.size() && text_[at_] >= 0x20 && text_[at_] < 0x7F
                                 ? std::string(1, static_cast<char>(text_[at_]))
                             : at_ < text_.size()
                                 ? fmt::format("U+{:04X}", static_cast<std::uint32_t>(text_[at_]))
                                 : "the end of the pattern";
    throw InputError(fmt::format("{}, character {}", where_, at_), expected, here);
  }

  bool peek(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char32_t c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::u32string_view what) {
    if (std::u32string_view(text_).substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  char32_t next(std::string_view expected) {
    if (at_ == text_.size()) refuse(expected);
    return text_[at_++];
  }

  Piece limited(const Piece& piece) const {
    if (piece.states > kMaxPatternStates) {
      refuse(fmt::format("repetitions that come to at most {} states", kMaxPatternStates),
             std::to_string(piece.states));
    }
    return piece;
  }

  // Up to | or ) or the end, or a $ before one of the first and last.
  Piece terms(int depth) {
    std::vector<ExprId> parts;
    std::size_t states = 0;
    while (at_ < text_.size() && !peek('|') && !peek(')')) {
      if (peek('$')) {
        const bool last = at_ + 1 == text_.size() || text_[at_ + 1] == '|';
        if (depth == 0 && last) break;
        refuse("$ only at the end of the pattern or of an alternative of it");
      }
      const Piece term = quantified(depth);
      parts.push_back(term.expr);
      states += term.states;
    }
    return limited({g_.sequence(parts), states});
  }

  Piece group(int depth) {
    if (depth == kMaxDepth) refuse(fmt::format("groups at most {} deep", kMaxDepth));
    if (peek('?') && !take(U"?:")) refuse("a group or (?:...)", "(?");
    std::vector<ExprId> alternatives;
    std::size_t states = 0;
    do {
      const Piece branch = terms(depth + 1);
      alternatives.push_back(branch.expr);
      states += branch.states;
    } while (take('|'));
    if (!take(')')) refuse(")");
    return limited({g_.choice(alternatives), states});
  }

  Piece quantified(int depth) {
    Piece piece = atom(depth);
    const std::size_t start = at_;
    std::uint32_t min = 1, max = 1;
    if (take('*')) {
      min = 0, max = kUnbounded;
    } else if (take('+')) {
      max = kUnbounded;
    } else if (take('?')) {
      min = 0;
    } else if (take('{')) {
      min = max = count();
      if (take(',')) max = peek('}') ? kUnbounded : count();
      if (!take('}')) refuse("}");
      if (min > max)
        refuse("a count from the lower to the higher", fmt::format("{{{},{}", min, max));
    }
    if (at_ == start) return piece;
    take('?');  // a lazy quantifier finds the same strings
    if (peek('*') || peek('+') || peek('?') || peek('{')) refuse("one quantifier");
    const std::size_t times = max == kUnbounded ? min + std::size_t{1} : max;
    return limited({g_.repeat(piece.expr, min, max), piece.states * times});
  }

  std::uint32_t count() {
    std::uint32_t value = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && kDigit.contains(text_[at_])) {
      value = value * 10 + static_cast<std::uint32_t>(text_[at_++] - '0');
      if (value > kMaxPatternStates) {
        refuse(fmt::format("a count of at most {}", kMaxPatternStates), "more");
      }
    }
    if (at_ == start) refuse("a count");
    return value;
  }

  Piece atom(int depth) {
    if (take('(')) return group(depth);
    if (take('[')) return character(bracket());
    if (take('.')) return character(kLineEnd.complement());
    if (take('\\')) return character(escape());
    for (const char32_t c : U"*+?{^") {
      if (c != 0 && peek(c)) {
        refuse(c == '^' ? "^ only at the start of the pattern or of an alternative of it"
                        : "something to repeat");
      }
    }
    if (peek(']') || peek('}')) refuse("no closing bracket without an opening one");
    const char32_t c = next("a character");
    return character({{c, c}});
  }

  Piece character(const CharSet& set) { return {json_.usual_character(set), 1}; }

  // After the backslash.
  CharSet escape() {
    const char32_t c = next("an escape");
    switch (c) {
      case 'd':
        return kDigit;
      case 'D':
        return kDigit.complement();
      case 'w':
        return kWord;
      case 'W':
        return kWord.complement();
      case 's':
        return kSpace;
      case 'S':
        return kSpace.complement();
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      default:
        break;
    }
    const bool alphanumeric = kWord.contains(c) || c >= 0x80;
    if (alphanumeric) {
      --at_;
      refuse(R"(an escape of \d \D \w \W \s \S \n \r \t \f \v \xHH \uHHHH or of a sign)",
             c < 0x80 ? fmt::format("\\{}", static_cast<char>(c)) : std::string());
    }
    return {{c, c}};
  }

  CharSet hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = next("a hexadecimal digit");
      const char32_t lower = c | 0x20;
      if (kDigit.contains(c)) {
        value = value * 16 + (c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + (lower - 'a' + 10);
      } else {
        --at_;
        refuse("a hexadecimal digit");
      }
    }
    const CharSet set{{value, value}};
    if (set.empty())
      refuse("no surrogates", fmt::format("\\u{:04x}", static_cast<std::uint32_t>(value)));
    return set;
  }

  // After the [.
  CharSet bracket() {
    const bool negated = take('^');
    CharSet set;
    while (!take(']')) {
      const CharSet low = class_atom();
      if (!peek('-') || (at_ + 1 < text_.size() && text_[at_ + 1] == ']')) {
        set = set | low;
        continue;
      }
      take('-');
      const CharSet high = class_atom();
      const auto one = [](const CharSet& s) {
        return s.ranges().size() == 1 && s.ranges()[0].first == s.ranges()[0].second;
      };
      if (!one(low) || !one(high) || low.ranges()[0].first > high.ranges()[0].first) {
        refuse("a range from a lower to a higher character", "another");
      }
      set.add(low.ranges()[0].first, high.ranges()[0].first);
    }
    return negated ? set.complement() : set;
  }

  CharSet class_atom() {
    const char32_t c = next("]");
    if (c != '\\') return {{c, c}};
    if (take('b')) return {{'\b', '\b'}};
    return escape();
  }

  JsonText& json_;
  Grammar& g_;
  std::u32string text_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace

ExprId add_pattern(JsonText& json, std::string_view pattern, std::string_view where) {
  return PatternParser(json, pattern, where).parse();
}

}  // namespace cupel
