// Rotary position embedding on interleaved pairs, plain or with YaRN (spec section 3.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cupel/base/thread_pool.h"

namespace cupel {

struct RopeSettings {
  std::size_t dim = 64;  // rotary elements
  double theta = 10000;
  bool yarn = false;
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_positions = 65536;
};

// freq[i] for i in [0, dim/2), fp32.
std::vector<float> rope_frequencies(const RopeSettings& settings);

// cos and sin of position * frequency for a list of positions.
class RopeTable {
 public:
  RopeTable() = default;
  RopeTable(ThreadPool& pool, std::span<const float> frequencies,
            std::span<const std::int64_t> positions);

  // [dim/2] of the index-th position.
  const float* cosines(std::size_t index) const { return cosines_.data() + index * pairs_; }
  const float* sines(std::size_t index) const { return sines_.data() + index * pairs_; }
  std::size_t dim() const { return 2 * pairs_; }

 private:
  std::size_t pairs_ = 0;
  std::vector<float> cosines_, sines_;
};

// Rotates the last table.dim() elements of each vector, in place.
struct RopeParams {
  float* x = nullptr;       // [rows, vectors, width]
  std::size_t rows = 0;     // row r is at the r-th position of the table
  std::size_t vectors = 1;  // heads
  std::size_t width = 0;
  const RopeTable* table = nullptr;
  bool inverse = false;  // multiply by the conjugate
  bool round_bf16 = false;
};
void rope(ThreadPool& pool, const RopeParams& params);

}  // namespace cupel
