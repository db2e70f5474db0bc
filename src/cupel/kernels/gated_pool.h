// The pooling step of the compressor (spec section 3.7).
#pragma once

#include <cstddef>
#include <span>

namespace cupel {

// out[c] = sum_t softmax_t(gate[t][c]) * value[t][c], channel by channel, t ascending. A row whose
// pointer is null has gate -inf and takes no part (the missing window before the first one); at
// least one row must be there.
struct GatedPoolParams {
  std::span<const float* const> values;  // rows of [width]
  std::span<const float* const> gates;   // rows of [width]
  std::size_t width = 0;
  float* out = nullptr;  // [width]
};
void gated_pool(const GatedPoolParams& params);

}  // namespace cupel
