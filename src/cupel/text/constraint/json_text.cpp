#include "cupel/text/constraint/json_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

constexpr std::uint32_t kUnbounded = Grammar::kUnbounded;

const CharSet& must_be_escaped() {
  static const CharSet set{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return set;
}

ByteSet set_of(std::string_view bytes) {
  ByteSet set;
  for (const char c : bytes) set.set(static_cast<std::uint8_t>(c));
  return set;
}

std::string short_escape(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
  }
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string points;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Sequence sequence = decode_utf8(text, at);
    points += sequence.code_point;
    at += sequence.length;
  }
  return points;
}

JsonText::JsonText(Grammar& grammar, const JsonStyle& style) : grammar_(grammar) {
  Grammar& g = grammar_;
  const auto separator = [&](std::string_view text) {
    if (!style.spaces) return g.literal(text);
    return g.sequence({g.literal(text), g.optional(g.literal(" "))});
  };
  comma_ = separator(",");
  colon_ = separator(":");
  quote_ = g.literal("\"");
  boolean_ = g.choice({g.literal("true"), g.literal("false")});
  null_ = g.literal("null");
  digit_ = g.bytes(set_of("0123456789"));
  integer_ = g.sequence(
      {g.optional(g.literal("-")),
       g.choice({g.literal("0"), g.sequence({g.bytes(set_of("123456789")), digits(0, 17)})})});
  const ExprId fraction = g.sequence({g.literal("."), digits(1, 17)});
  const ExprId exponent =
      g.sequence({g.bytes(set_of("eE")), g.optional(g.bytes(set_of("+-"))), digits(1, 2)});
  number_ = g.sequence({integer_, g.optional(fraction), g.optional(exponent)});
  any_ = any_character();
  any_usual_ = usual_character(CharSet::all() - CharSet{{0, 0}});
  g.mark_plain(any_usual_);
}

ExprId JsonText::digits(std::uint32_t min, std::uint32_t max) {
  return grammar_.repeat(digit_, min, max);
}

ExprId JsonText::any_character() {
  Grammar& g = grammar_;
  std::vector<ExprId> forms = utf8_forms(g, must_be_escaped().complement());
  const auto hex = [&](std::string_view set) { return g.bytes(set_of(set)); };
  const std::string_view all = "0123456789abcdefABCDEF";
  const ExprId any = hex(all), not_zero = hex(all.substr(1)), zero = hex("0");
  // Four digits that are neither 0000 nor of a surrogate, or a pair of surrogates.
  const ExprId unit =
      g.choice({g.sequence({hex("123456789abcefABCEF"), any, any, any}),
                g.sequence({hex("dD"), hex("01234567"), any, any}),
                g.sequence({zero, g.choice({g.sequence({not_zero, any, any}),
                                            g.sequence({zero, not_zero, any}),
                                            g.sequence({zero, zero, not_zero})})})});
  const ExprId pair = g.sequence(
      {hex("dD"), hex("89abAB"), any, any, g.literal("\\u"), hex("dD"), hex("cdefCDEF"), any, any});
  const ExprId escape = g.choice(
      {g.bytes(set_of("\"\\/bfnrt")), g.sequence({g.literal("u"), g.choice({unit, pair})})});
  forms.push_back(g.sequence({g.literal("\\"), escape}));
  const ExprId character = g.choice(forms);
  g.mark_plain(character);
  return character;
}

ExprId JsonText::usual_character(const CharSet& set) {
  std::vector<ExprId> forms = utf8_forms(grammar_, set - must_be_escaped());
  std::vector<std::string> escapes;
  for (const auto& [first, last] : must_be_escaped().ranges()) {
    for (char32_t c = first; c <= last; ++c) {
      if (set.contains(c)) escapes.push_back(short_escape(c));
    }
  }
  if (!escapes.empty()) forms.push_back(grammar_.one_of(std::move(escapes)));
  return grammar_.choice(forms);
}

ExprId JsonText::string(std::uint32_t min, std::uint32_t max) {
  return grammar_.sequence({quote_, grammar_.repeat(any_, min, max), quote_});
}

ExprId JsonText::string_but(std::span<const std::string> names) {
  std::vector<std::u32string> sorted;
  for (const std::string& name : names) sorted.push_back(code_points(name));
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return grammar_.sequence({quote_, string_but(sorted, 0)});
}

// What may follow the first `skip` code points, which all of the names have, the closing quote
// included.
ExprId JsonText::string_but(std::span<const std::u32string> sorted, std::size_t skip) {
  Grammar& g = grammar_;
  std::vector<ExprId> alternatives;
  if (!sorted.empty() && sorted.front().size() == skip) {
    sorted = sorted.subspan(1);
  } else {
    alternatives.push_back(quote_);
  }
  CharSet followed({{0, 0}});
  std::vector<ExprId> beginnings;
  while (!sorted.empty()) {
    const char32_t c = sorted.front()[skip];
    const auto end = std::find_if(sorted.begin(), sorted.end(),
                                  [&](const std::u32string& name) { return name[skip] != c; });
    const auto group = sorted.first(static_cast<std::size_t>(end - sorted.begin()));
    followed.add(c, c);
    beginnings.push_back(g.sequence({usual_character({{c, c}}), string_but(group, skip + 1)}));
    sorted = sorted.subspan(group.size());
  }
  alternatives.push_back(g.sequence(
      {usual_character(followed.complement()), g.repeat(any_usual_, 0, kUnbounded), quote_}));
  alternatives.insert(alternatives.end(), beginnings.begin(), beginnings.end());
  return g.choice(alternatives);
}

ExprId JsonText::array(ExprId item, std::uint32_t min, std::uint32_t max) {
  Grammar& g = grammar_;
  std::vector<ExprId> contents;
  if (min == 0) contents.push_back(g.literal(""));
  if (max > 0) {
    const std::uint32_t more = max == kUnbounded ? kUnbounded : max - 1;
    contents.push_back(
        g.sequence({item, g.repeat(g.sequence({comma_, item}), std::max(min, 1U) - 1, more)}));
  }
  return g.sequence({g.literal("["), g.choice(contents), g.literal("]")});
}

ExprId JsonText::free_array(int depth) {
  return array(value(depth - 1), 0, kUnbounded);
}

ExprId JsonText::free_object(int depth) {
  Grammar& g = grammar_;
  const ExprId member = g.sequence({string(0, kUnbounded), colon_, value(depth - 1)});
  const ExprId more = g.repeat(g.sequence({comma_, member}), 0, kUnbounded);
  return g.sequence({g.literal("{"), g.optional(g.sequence({member, more})), g.literal("}")});
}

ExprId JsonText::value(int depth) {
  auto& known = values_.at(static_cast<std::size_t>(depth));
  if (known) return *known;
  std::vector<ExprId> kinds = {string(0, kUnbounded), number_, boolean_, null_};
  if (depth > 0) {
    kinds.push_back(free_object(depth));
    kinds.push_back(free_array(depth));
  }
  known = grammar_.choice(kinds);
  return *known;
}

}  // namespace cupel
