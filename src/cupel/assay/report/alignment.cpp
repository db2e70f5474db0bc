#include "cupel/assay/report/alignment.h"

#include <algorithm>

#include "cupel/assay/report/printable.h"

namespace cupel {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The largest boundary of `text` that is at most `at`.
std::size_t boundary_before(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && continues(text[at])) --at;
  return at;
}

// A mark at `at` belongs to the character before.
bool splits_character(std::string_view text, std::size_t at) {
  if (at == 0 || at >= text.size()) return false;
  const std::size_t previous = boundary_before(text, at - 1);
  return first_character(text.substr(previous)).size() > at - previous;
}

// The first `limit` bytes at most.
std::string head(std::string_view text, std::size_t limit) {
  return std::string(text.substr(0, boundary_before(text, std::min(limit, text.size()))));
}

}  // namespace

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t at = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin()).first -
      a.begin());
  if (at == a.size() && at == b.size()) return at;
  // One of the two may end here: the other tells whether that is inside a character.
  while (at > 0 && ((at < a.size() && (continues(a[at]) || splits_character(a, at))) ||
                    (at < b.size() && (continues(b[at]) || splits_character(b, at))))) {
    --at;
  }
  return at;
}

std::optional<int> first_different_token(std::span<const std::int32_t> a,
                                         std::span<const std::int32_t> b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at == a.end() && other == b.end()) return std::nullopt;
  return static_cast<int>(at - a.begin());
}

Alignment align(std::string_view reference, std::string_view candidate) {
  const std::string a = printable(reference);
  const std::string b = printable(candidate);
  Alignment result;
  result.same = reference == candidate;
  result.offset = common_prefix(a, b);
  std::size_t begin = 0;
  if (result.offset > kBytesBefore) {
    begin = result.offset - kBytesBefore;
    while (begin < result.offset && continues(a[begin])) ++begin;
  }
  result.before = a.substr(begin, result.offset - begin);
  result.before_cut = begin > 0;
  const std::string_view rest_a = std::string_view(a).substr(result.offset);
  const std::string_view rest_b = std::string_view(b).substr(result.offset);
  result.reference = head(rest_a, kBytesAfter);
  result.candidate = head(rest_b, kBytesAfter);
  result.reference_cut = result.reference.size() < rest_a.size();
  result.candidate_cut = result.candidate.size() < rest_b.size();
  return result;
}

}  // namespace cupel
