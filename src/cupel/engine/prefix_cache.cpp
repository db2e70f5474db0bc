#include "cupel/engine/prefix_cache.h"

#include <algorithm>

namespace cupel {
namespace {

std::size_t common_length(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t length = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < length && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

PrefixCache::Match PrefixCache::find(std::span<const std::int32_t> tokens) {
  Match match;
  Node* best = nullptr;
  Node* node = &root_;
  while (match.common < tokens.size()) {
    const auto child = node->children.find(tokens[match.common]);
    if (child == node->children.end()) break;
    node = child->second.get();
    const std::size_t same = common_length(node->edge, tokens.subspan(match.common));
    match.common += same;
    if (same < node->edge.size()) break;
    if (node->state) best = node;
  }
  if (best != nullptr) {
    uses_.splice(uses_.begin(), uses_, best->use);
    match.state = &*best->state;
  }
  return match;
}

PrefixCache::Node* PrefixCache::split(Node* node, std::size_t length) {
  Node* parent = node->parent;
  auto& slot = parent->children.at(node->edge.front());
  auto upper = std::make_unique<Node>();
  const auto cut = node->edge.begin() + static_cast<std::ptrdiff_t>(length);
  upper->parent = parent;
  upper->edge.assign(node->edge.begin(), cut);
  node->edge.erase(node->edge.begin(), cut);
  node->parent = upper.get();
  upper->children[node->edge.front()] = std::move(slot);
  slot = std::move(upper);
  return slot.get();
}

PrefixCache::Node* PrefixCache::node_for(std::span<const std::int32_t> tokens) {
  Node* node = &root_;
  for (std::size_t at = 0; at < tokens.size();) {
    auto& child = node->children[tokens[at]];
    if (!child) {
      child = std::make_unique<Node>();
      child->parent = node;
      child->edge.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end());
      return child.get();
    }
    const std::size_t same = common_length(child->edge, tokens.subspan(at));
    node = same < child->edge.size() ? split(child.get(), same) : child.get();
    at += same;
  }
  return node;
}

void PrefixCache::insert(std::span<const std::int32_t> tokens, SequenceState state) {
  Node* node = node_for(tokens);
  if (node->state) {
    uses_.splice(uses_.begin(), uses_, node->use);
    store_.close(state);
    return;
  }
  node->state = std::move(state);
  node->use = uses_.insert(uses_.begin(), node);
}

void PrefixCache::prune(Node* node) {
  while (node->parent != nullptr && !node->state && node->children.empty()) {
    Node* parent = node->parent;
    parent->children.erase(node->edge.front());
    node = parent;
  }
  if (node->parent == nullptr || node->state || node->children.size() != 1) return;
  // A node that only leads on: its child takes its place.
  std::unique_ptr<Node> child = std::move(node->children.begin()->second);
  child->edge.insert(child->edge.begin(), node->edge.begin(), node->edge.end());
  child->parent = node->parent;
  child->parent->children.at(child->edge.front()) = std::move(child);
}

bool PrefixCache::evict() {
  if (uses_.empty()) return false;
  Node* node = uses_.back();
  uses_.pop_back();
  if (node->state) store_.close(*node->state);
  node->state.reset();
  prune(node);
  return true;
}

void PrefixCache::clear() {
  while (evict()) {
  }
}

}  // namespace cupel
