// Byte-pair encoding of one piece of the pre-tokeniser.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cupel {

class BytePairEncoder {
 public:
  // Token `left` followed by token `right` becomes `result`. The place in the list is the rank.
  struct Merge {
    std::int32_t left;
    std::int32_t right;
    std::int32_t result;
  };

  // Memory that encode() reuses from piece to piece; one for each thread.
  struct Workspace {
    struct Symbol {
      std::int32_t id;  // -1: merged into the symbol before it
      std::size_t previous;
      std::size_t next;
    };
    struct Candidate {
      std::uint32_t rank;
      std::size_t position;  // byte where the pair starts
      Merge merge;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> candidates;
  };

  // byte_ids: the token of each byte. Each pair (left, right) occurs once in `merges`, and all ids
  // are >= 0.
  BytePairEncoder(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the tokens of `piece` to `ids`: starting from its bytes, the adjacent pair of the
  // lowest rank is merged, the leftmost first, until no pair has a merge.
  // O(n log n) in the length of the piece.
  void encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;

 private:
  struct Ranked {
    std::uint32_t rank;
    std::int32_t result;
  };
  void add_candidate(std::size_t position, Workspace& workspace) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::unordered_map<std::uint64_t, Ranked> merges_;  // by (left, right)
};

}  // namespace cupel
