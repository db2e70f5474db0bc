#include "cupel/text/byte_pair_encoder.h"

#include <algorithm>

namespace cupel {
namespace {

using Workspace = BytePairEncoder::Workspace;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

// Heap order: the top is the candidate of the lowest rank, then the leftmost.
bool comes_later(const Workspace::Candidate& a, const Workspace::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<std::int32_t, 256>& byte_ids,
                                 const std::vector<Merge>& merges)
    : byte_ids_(byte_ids) {
  merges_.reserve(merges.size());
  std::uint32_t rank = 0;
  for (const Merge& merge : merges) {
    merges_.emplace(pair_key(merge.left, merge.right), Ranked{rank++, merge.result});
  }
}

void BytePairEncoder::add_candidate(std::size_t position, Workspace& workspace) const {
  if (position == kNone) return;
  const Workspace::Symbol& left = workspace.symbols[position];
  if (left.next == kNone) return;
  const std::int32_t right = workspace.symbols[left.next].id;
  const auto found = merges_.find(pair_key(left.id, right));
  if (found == merges_.end()) return;
  workspace.candidates.push_back(
      {found->second.rank, position, {left.id, right, found->second.result}});
  std::push_heap(workspace.candidates.begin(), workspace.candidates.end(), comes_later);
}

void BytePairEncoder::encode(std::string_view piece, Workspace& workspace,
                             std::vector<std::int32_t>& ids) const {
  auto& symbols = workspace.symbols;
  auto& candidates = workspace.candidates;
  symbols.clear();
  candidates.clear();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    symbols.push_back({byte_ids_[static_cast<std::uint8_t>(piece[i])], i == 0 ? kNone : i - 1,
                       i + 1 == piece.size() ? kNone : i + 1});
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) add_candidate(i, workspace);

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), comes_later);
    const Workspace::Candidate candidate = candidates.back();
    candidates.pop_back();
    // A candidate is stale if either side has been merged since. A token has fixed bytes, so equal
    // ids at the same place are the same pair.
    Workspace::Symbol& left = symbols[candidate.position];
    if (left.id != candidate.merge.left || left.next == kNone) continue;
    Workspace::Symbol& right = symbols[left.next];
    if (right.id != candidate.merge.right) continue;

    left.id = candidate.merge.result;
    right.id = -1;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = candidate.position;
    add_candidate(left.previous, workspace);
    add_candidate(candidate.position, workspace);
  }
  for (const Workspace::Symbol& symbol : symbols) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

}  // namespace cupel
