#include "cupel/text/added_tokens.h"

namespace cupel {

AddedTokenMatcher::AddedTokenMatcher() : nodes_(1) {}

std::uint32_t AddedTokenMatcher::find_child(std::uint32_t node, std::uint8_t byte) const {
  if (node == 0) return first_[byte];
  std::uint32_t child = nodes_[node].child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void AddedTokenMatcher::add(std::string_view text, std::int32_t id) {
  std::uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    std::uint32_t child = find_child(node, byte);
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({byte, -1, 0, node == 0 ? 0 : nodes_[node].child});
      (node == 0 ? first_[byte] : nodes_[node].child) = child;
    }
    node = child;
  }
  nodes_[node].id = id;
}

bool AddedTokenMatcher::find(std::string_view text, std::size_t from, Match& match) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    bool found = false;
    std::uint32_t node = 0;
    for (std::size_t end = begin; end < text.size();) {
      node = find_child(node, static_cast<std::uint8_t>(text[end]));
      if (node == 0) break;
      ++end;
      if (nodes_[node].id < 0) continue;
      match = {begin, end, nodes_[node].id};
      found = true;
    }
    if (found) return true;
  }
  return false;
}

}  // namespace cupel
