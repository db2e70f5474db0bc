// The tokens of a tokenizer by their bytes, as constraints need them. Made once for a tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cupel/text/tokenizer.h"

namespace cupel {

// Added tokens are not part of it: text never contains them, and a grammar names those it wants.
class ConstraintVocabulary {
 public:
  // A node of the trie in depth-first order: what follows it up to `skip` begins with its bytes.
  struct Node {
    std::uint32_t skip;
    std::uint32_t first_token;  // in tokens(): those whose bytes end here
    std::uint16_t token_count;
    std::uint16_t depth;  // bytes; from 1
    std::uint8_t byte;
    bool has_plain;  // a plain token ends here or below
    bool has_other;
  };

  explicit ConstraintVocabulary(const Tokenizer& tokenizer);

  bool has(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < bytes_.size() &&
           !bytes_[static_cast<std::size_t>(id)].empty();
  }
  std::string_view bytes(std::int32_t id) const { return bytes_[static_cast<std::size_t>(id)]; }
  // Words of a mask: a bit for each id.
  std::size_t words() const { return (bytes_.size() + 63) / 64; }

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::int32_t> tokens(const Node& node) const {
    return std::span(tokens_).subspan(node.first_token, node.token_count);
  }
  std::size_t longest() const { return longest_; }  // bytes of a token

  // Plain tokens are whole code points of U+0020 and up without " and \: what stays inside a JSON
  // string. The mask of those of at most `code_points`.
  std::span<const std::uint64_t> plain_mask(std::size_t code_points) const;
  // The most code points of one.
  std::size_t longest_plain() const { return plain_masks_.size(); }

  // The fewest tokens that spell a text, from left to right; ties to the longer one first.
  std::vector<std::int32_t> fewest_tokens(std::string_view text) const;

 private:
  void add_tokens(std::span<const std::int32_t> sorted);
  void add_plain_masks();

  std::vector<std::string> bytes_;  // by id; empty: no token of this vocabulary
  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::vector<std::uint64_t>> plain_masks_;  // [k - 1]: of at most k code points
  std::array<std::uint32_t, 256> roots_{};               // the node of a first byte
  std::size_t longest_ = 0;
};

}  // namespace cupel
