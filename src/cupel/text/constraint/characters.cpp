#include "cupel/text/constraint/characters.h"

#include <algorithm>
#include <array>

namespace cupel {
namespace {

std::vector<std::uint8_t> encode(char32_t c) {
  const auto tail = [&](int shift) {
    return static_cast<std::uint8_t>(0x80 | (c >> shift & 0x3F));
  };
  if (c < 0x800) return {static_cast<std::uint8_t>(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<std::uint8_t>(0xE0 | c >> 12), tail(6), tail(0)};
  return {static_cast<std::uint8_t>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

ByteSet byte_range(std::size_t first, std::size_t last) {
  ByteSet set;
  for (std::size_t byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

// Splits a range until each byte position of its encodings is a range of its own.
void add_sequences(Grammar& grammar, char32_t first, char32_t last, std::vector<ExprId>& forms) {
  for (const char32_t end : {char32_t{0x7FF}, char32_t{0xFFFF}}) {
    if (first <= end && end < last) {
      add_sequences(grammar, first, end, forms);
      add_sequences(grammar, end + 1, last, forms);
      return;
    }
  }
  const int length = first < 0x800 ? 2 : first < 0x10000 ? 3 : 4;
  for (int i = 1; i < length; ++i) {
    const char32_t low_bits = (char32_t{1} << (6 * i)) - 1;
    if ((first & ~low_bits) == (last & ~low_bits)) continue;
    char32_t cut = 0;  // the first of the second part
    if ((first & low_bits) != 0) {
      cut = (first | low_bits) + 1;
    } else if ((last & low_bits) != low_bits) {
      cut = last & ~low_bits;
    } else {
      continue;
    }
    add_sequences(grammar, first, cut - 1, forms);
    add_sequences(grammar, cut, last, forms);
    return;
  }
  const auto low = encode(first), high = encode(last);
  std::vector<ExprId> bytes;
  for (std::size_t i = 0; i < low.size(); ++i) {
    bytes.push_back(grammar.bytes(byte_range(low[i], high[i])));
  }
  forms.push_back(grammar.sequence(bytes));
}

}  // namespace

CharSet::CharSet(std::initializer_list<Range> ranges) : ranges_(ranges) {
  normalise();
}

void CharSet::add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  normalise();
}

void CharSet::normalise() {
  std::vector<Range> scalars;
  for (const auto& [first, last] : ranges_) {
    if (first < 0xD800) scalars.emplace_back(first, std::min<char32_t>(last, 0xD7FF));
    if (last > 0xDFFF) scalars.emplace_back(std::max<char32_t>(first, 0xE000), last);
  }
  std::sort(scalars.begin(), scalars.end());
  ranges_.clear();
  for (const auto& [first, last] : scalars) {
    if (!ranges_.empty() && first <= ranges_.back().second + 1) {
      ranges_.back().second = std::max(ranges_.back().second, last);
    } else {
      ranges_.emplace_back(first, last);
    }
  }
}

CharSet CharSet::operator|(const CharSet& other) const {
  CharSet both = *this;
  both.ranges_.insert(both.ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  both.normalise();
  return both;
}

CharSet CharSet::operator-(const CharSet& other) const {
  CharSet left;
  for (auto [first, last] : ranges_) {
    for (const auto& [low, high] : other.ranges_) {
      if (high < first || low > last) continue;
      if (low > first) left.ranges_.emplace_back(first, low - 1);
      first = high + 1;
      if (first > last) break;
    }
    if (first <= last) left.ranges_.emplace_back(first, last);
  }
  left.normalise();
  return left;
}

bool CharSet::contains(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& r) { return r.first <= c && c <= r.second; });
}

std::vector<ExprId> utf8_forms(Grammar& grammar, const CharSet& set) {
  std::vector<ExprId> forms;
  ByteSet ascii;
  for (const auto& [first, last] : set.ranges()) {
    if (first < 0x80) ascii |= byte_range(first, std::min<char32_t>(last, 0x7F));
  }
  if (ascii.any()) forms.push_back(grammar.bytes(ascii));
  for (const auto& [first, last] : set.ranges()) {
    if (last >= 0x80) add_sequences(grammar, std::max<char32_t>(first, 0x80), last, forms);
  }
  return forms;
}

}  // namespace cupel
