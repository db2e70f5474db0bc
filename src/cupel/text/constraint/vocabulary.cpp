#include "cupel/text/constraint/vocabulary.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

// Longer ones spell nothing that shorter ones do not.
constexpr std::size_t kLongestToken = 4096;

// Code points of a plain token.
std::optional<std::size_t> plain_length(std::string_view bytes) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++count) {
    const Utf8Sequence sequence = decode_utf8(bytes, at);
    const bool plain = sequence.kind == Utf8Sequence::Kind::kValid && sequence.code_point >= 0x20 &&
                       sequence.code_point != '"' && sequence.code_point != '\\';
    if (!plain) return std::nullopt;
    at += sequence.length;
  }
  return count;
}

}  // namespace

ConstraintVocabulary::ConstraintVocabulary(const Tokenizer& tokenizer)
    : bytes_(static_cast<std::size_t>(tokenizer.id_limit())) {
  std::vector<std::int32_t> sorted;
  for (std::int32_t id = 0; id < tokenizer.id_limit(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    if (tokenizer.is_added(id) || bytes.empty() || bytes.size() > kLongestToken) continue;
    bytes_[static_cast<std::size_t>(id)] = bytes;
    sorted.push_back(id);
  }
  std::sort(sorted.begin(), sorted.end(), [&](std::int32_t a, std::int32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  add_tokens(sorted);
  add_plain_masks();
}

void ConstraintVocabulary::add_tokens(std::span<const std::int32_t> sorted) {
  std::vector<std::uint32_t> path;  // nodes of the last token's bytes
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].skip = static_cast<std::uint32_t>(nodes_.size());
    }
  };
  std::string_view last;
  for (const std::int32_t id : sorted) {
    const std::string_view text = bytes(id);
    longest_ = std::max(longest_, text.size());
    const auto common = static_cast<std::size_t>(
        std::mismatch(text.begin(), text.end(), last.begin(), last.end()).first - text.begin());
    close(common);
    for (std::size_t depth = common; depth < text.size(); ++depth) {
      const auto byte = static_cast<std::uint8_t>(text[depth]);
      const auto node = static_cast<std::uint32_t>(nodes_.size());
      if (depth == 0) roots_[byte] = node;
      path.push_back(node);
      nodes_.push_back({.skip = 0,
                        .first_token = static_cast<std::uint32_t>(tokens_.size()),
                        .token_count = 0,
                        .depth = static_cast<std::uint16_t>(depth + 1),
                        .byte = byte,
                        .has_plain = false,
                        .has_other = false});
    }
    tokens_.push_back(id);
    ++nodes_[path.back()].token_count;
    const bool plain = plain_length(text).has_value();
    for (const std::uint32_t node : path) {
      (plain ? nodes_[node].has_plain : nodes_[node].has_other) = true;
    }
    last = text;
  }
  close(0);
}

void ConstraintVocabulary::add_plain_masks() {
  for (const std::int32_t id : tokens_) {
    const auto length = plain_length(bytes(id));
    if (!length) continue;
    if (plain_masks_.size() < *length) plain_masks_.resize(*length);
    auto& mask = plain_masks_[*length - 1];
    mask.resize(words());
    mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
  }
  for (std::size_t k = 0; k < plain_masks_.size(); ++k) {
    plain_masks_[k].resize(words());
    for (std::size_t word = 0; k > 0 && word < words(); ++word) {
      plain_masks_[k][word] |= plain_masks_[k - 1][word];
    }
  }
}

std::span<const std::uint64_t> ConstraintVocabulary::plain_mask(std::size_t code_points) const {
  if (code_points == 0 || plain_masks_.empty()) return {};
  return plain_masks_[std::min(code_points, plain_masks_.size()) - 1];
}

std::vector<std::int32_t> ConstraintVocabulary::fewest_tokens(std::string_view text) const {
  // From the end: the fewest tokens from each byte on, and the first of them.
  std::vector<std::uint32_t> count(text.size() + 1, 0);
  std::vector<std::int32_t> first(text.size(), -1);
  for (std::size_t at = text.size(); at-- > 0;) {
    count[at] = 0xffffffff;
    std::uint32_t node = roots_[static_cast<std::uint8_t>(text[at])];
    for (std::size_t end = at + 1;; ++end) {
      // Every byte is a token, so that a root is always there.
      if (nodes_[node].token_count > 0 && count[end] + 1 <= count[at]) {
        count[at] = count[end] + 1;
        first[at] = tokens(nodes_[node]).front();
      }
      if (end == text.size()) break;
      const auto byte = static_cast<std::uint8_t>(text[end]);
      const std::uint32_t stop = nodes_[node].skip;
      std::uint32_t child = node + 1;
      while (child < stop && nodes_[child].byte < byte) child = nodes_[child].skip;
      if (child >= stop || nodes_[child].byte != byte) break;
      node = child;
    }
  }
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < text.size(); at += bytes(ids.back()).size()) {
    ids.push_back(first[at]);
  }
  return ids;
}

}  // namespace cupel
