// Scores of the indexer, on decoded keys.
#pragma once

#include <cstddef>

namespace cupel {

// Keys that one call is given at most, so that they stay in the first-level cache while all heads
// pass over them.
inline constexpr std::size_t kIndexKeyTile = 32;

struct IndexScoreParams {
  const float* q = nullptr;        // [heads, 128]
  const float* weights = nullptr;  // [heads]
  std::size_t heads = 0;
  const float* keys = nullptr;  // [count, 128]
  std::size_t count = 0;        // 1 to kIndexKeyTile
  float* scores = nullptr;      // [count]
};

// scores[j] = sum over heads, ascending, of relu(q[h] . keys[j]) * weights[h], in fp32. A score
// does not depend on the other keys.
void index_scores_f32(const IndexScoreParams& params);

// The same with every step rounded to bf16: dot, product with the weight, sum (spec 3.8.6).
void index_scores_bf16(const IndexScoreParams& params);

}  // namespace cupel
