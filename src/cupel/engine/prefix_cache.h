// States of sequences that were computed, by their tokens: a new request starts from the longest
// one it begins with.
//
// A state can be continued only from its end: the window ring and the compressors' partial windows
// are those of that position. So the cache holds states at the positions where someone asked for
// one (the end of a request, and where two prompts part), in a radix tree over tokens. Entries and
// index keys of a kept state are shared pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cupel/model/sequence_store.h"

namespace cupel {

class PrefixCache {
 public:
  explicit PrefixCache(SequenceStore& store) : store_(store) {}
  ~PrefixCache() { clear(); }
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Match {
    std::size_t common = 0;                // tokens that some kept state begins with too
    const SequenceState* state = nullptr;  // the longest kept state that tokens begin with, or none

    std::size_t length() const {
      return state == nullptr ? 0 : static_cast<std::size_t>(state->length);
    }
  };
  // The state found counts as used now.
  Match find(std::span<const std::int32_t> tokens);

  // Keeps a state, which has processed `tokens`. One that is kept already is closed.
  void insert(std::span<const std::int32_t> tokens, SequenceState state);

  // Gives up the state that was used longest ago; false if there is none.
  bool evict();
  void clear();

  std::size_t size() const { return uses_.size(); }

 private:
  struct Node {
    Node* parent = nullptr;
    std::vector<std::int32_t> edge;  // from the parent; empty at the root only
    std::map<std::int32_t, std::unique_ptr<Node>> children;  // by first token of the edge
    std::optional<SequenceState> state;
    std::list<Node*>::iterator use;  // if there is a state
  };

  // Makes a node of the first `length` tokens of the edge to `node`; returns it.
  static Node* split(Node* node, std::size_t length);
  // Removes or joins what stands without a state of its own.
  static void prune(Node* node);
  Node* node_for(std::span<const std::int32_t> tokens);

  SequenceStore& store_;
  Node root_;
  std::list<Node*> uses_;  // last used first
};

}  // namespace cupel
