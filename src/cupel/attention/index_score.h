// Scores of the indexer, on decoded keys.
#pragma once

#include <cstddef>

namespace cupel {

// sum over heads, ascending, of relu(q[h] . key) * weights[h], in fp32.
float index_score_f32(const float* q, const float* key, const float* weights, std::size_t heads);

// The same with every step rounded to bf16: dot, product with the weight, sum (spec 3.8.6).
float index_score_bf16(const float* q, const float* key, const float* weights, std::size_t heads);

}  // namespace cupel
