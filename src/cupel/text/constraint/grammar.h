// The form of an output as a context-free grammar over bytes: what a constraint is compiled from.
//
//   Grammar g;
//   const ExprId value = add_json_schema(g, schema, "tools/0/parameters");
//   g.set_root(g.sequence({g.literal("<call>"), value, g.literal("</call>")}));
//   request.constraint = make_constraint(std::move(g), vocabulary, "tools");
//
// Alternatives are tried side by side, so a form may be any mix of fixed text, added tokens and
// values of several schemas.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cupel {

using ExprId = std::uint32_t;
using ByteSet = std::bitset<256>;

struct Expr {
  enum class Kind : std::uint8_t { kLiteral, kBytes, kToken, kSequence, kChoice, kRepeat, kRule };
  Kind kind;
  bool plain = false;  // kChoice: see mark_plain
  // kLiteral: a range of the text; kSequence, kChoice: of the parts; kBytes: a set; kToken: an id;
  // kRepeat, kRule: the body.
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t min = 0, max = 0;  // kRepeat
};

class Grammar {
 public:
  static constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();
  // Of a least length: no finite text matches.
  static constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

  ExprId literal(std::string_view bytes);  // "" matches the empty text
  ExprId bytes(const ByteSet& set);        // one byte of the set
  ExprId token(std::int32_t id);           // an added token, whole
  ExprId sequence(std::span<const ExprId> parts);
  ExprId sequence(std::initializer_list<ExprId> parts) { return sequence(std::span(parts)); }
  ExprId choice(std::span<const ExprId> parts);  // of none: nothing matches
  ExprId choice(std::initializer_list<ExprId> parts) { return choice(std::span(parts)); }
  // One of the texts, by their common beginnings.
  ExprId one_of(std::vector<std::string> texts);
  ExprId repeat(ExprId body, std::uint32_t min, std::uint32_t max);
  ExprId optional(ExprId body) { return repeat(body, 0, 1); }
  // A rule, to be defined later: what makes recursion possible. It must take a byte before it
  // comes to itself again.
  ExprId declare();
  void define(ExprId rule, ExprId body);

  // Says of a choice that each match is one code point, and that any of U+0020 and up but quote and
  // backslash matches: masks of repetitions of it are then taken from a table.
  void mark_plain(ExprId choice) { exprs_[choice].plain = true; }

  void set_root(ExprId root) { root_ = root; }
  ExprId root() const { return root_; }

  std::size_t size() const { return exprs_.size(); }
  const Expr& operator[](ExprId id) const { return exprs_[id]; }
  std::string_view text(const Expr& literal) const {
    return std::string_view(text_).substr(literal.first, literal.count);
  }
  const ByteSet& byte_set(const Expr& bytes) const { return sets_[bytes.first]; }
  std::span<const ExprId> parts(const Expr& e) const {
    return std::span(parts_).subspan(e.first, e.count);
  }
  bool uses_token(std::int32_t id) const;

  // The length in bytes of the shortest text of each expression (a token counts as one), or kNever.
  std::vector<std::uint32_t> least_lengths() const;

 private:
  ExprId add(const Expr& e);
  ExprId list(Expr::Kind kind, std::span<const ExprId> parts);
  ExprId one_of(std::span<const std::string> sorted, std::size_t skip);

  std::vector<Expr> exprs_;
  std::string text_;
  std::vector<ByteSet> sets_;
  std::vector<ExprId> parts_;
  ExprId root_ = 0;
};

}  // namespace cupel
