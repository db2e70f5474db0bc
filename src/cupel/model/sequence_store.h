// Where the states of sequences live, and what they cost. The scheduler and the prefix cache know
// no more of a network than this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/model/step.h"

namespace cupel {

// Pages of every backend cover this many tokens: a fork shares the full ones.
inline constexpr std::int64_t kPageTokens = 256;

class SequenceStore {
 public:
  virtual ~SequenceStore() = default;

  // A fresh, empty sequence.
  virtual SequenceState open() = 0;
  virtual void close(SequenceState& state) = 0;
  // A new sequence in the state of `from`. Full pages are shared.
  virtual SequenceState fork(const SequenceState& from) = 0;

  // Bytes of a sequence of that many tokens which shares nothing: pages and compressor states.
  virtual std::size_t sequence_bytes(std::int64_t length) const = 0;
  // Bytes of all open sequences; a shared page counts once.
  virtual std::size_t cache_bytes() const = 0;

  // What a fork of a sequence of that length adds.
  std::size_t fork_bytes(std::int64_t length) const { return sequence_bytes(length % kPageTokens); }
};

}  // namespace cupel
