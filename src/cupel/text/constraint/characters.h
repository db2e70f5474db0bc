// Sets of code points, and their UTF-8 as expressions.
#pragma once

#include <utility>
#include <vector>

#include "cupel/text/constraint/grammar.h"

namespace cupel {

// Unicode scalar values: surrogates are never in one.
class CharSet {
 public:
  using Range = std::pair<char32_t, char32_t>;  // both ends included

  CharSet() = default;
  CharSet(std::initializer_list<Range> ranges);
  static CharSet all() { return {{0, 0x10FFFF}}; }

  void add(char32_t first, char32_t last);
  CharSet operator|(const CharSet& other) const;
  CharSet operator-(const CharSet& other) const;
  CharSet complement() const { return all() - *this; }
  bool contains(char32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }  // ascending, apart

 private:
  void normalise();
  std::vector<Range> ranges_;
};

// The encodings of one code point each, as alternatives: one of a byte, then sequences of bytes.
std::vector<ExprId> utf8_forms(Grammar& grammar, const CharSet& set);

}  // namespace cupel
