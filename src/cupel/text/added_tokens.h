// Finds added tokens in raw text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cupel {

// A trie over the tokens' bytes.
class AddedTokenMatcher {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t id = -1;
  };

  AddedTokenMatcher();
  // `text` is not empty and has not been added before; id >= 0.
  void add(std::string_view text, std::int32_t id);

  // The leftmost match that starts at or after `from`, the longest of those that start there.
  // Returns false, and leaves `match` alone, if there is none.
  bool find(std::string_view text, std::size_t from, Match& match) const;

 private:
  struct Node {
    std::uint8_t byte = 0;
    std::int32_t id = -1;  // the token that ends here
    std::uint32_t child = 0;
    std::uint32_t sibling = 0;  // 0 (the root, nobody's child or sibling): none
  };
  std::uint32_t find_child(std::uint32_t node, std::uint8_t byte) const;

  std::vector<Node> nodes_;
  // The root's children. Most bytes of ordinary text start no token: one look settles them.
  std::array<std::uint32_t, 256> first_{};
};

}  // namespace cupel
