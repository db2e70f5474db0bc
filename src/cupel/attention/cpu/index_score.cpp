#include "cupel/attention/index_score.h"

#include <algorithm>

#include "cupel/attention/kv_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/attention/cpu/index_score.cpp"
#include <hwy/foreach_target.h>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

// Dots of up to four heads at once; heads beyond `count` repeat the last one.
HWY_INLINE void dots(const float* q, const float* key, std::size_t count, float* out) {
  const float* row[4];
  for (std::size_t g = 0; g < 4; ++g) row[g] = q + std::min(g, count - 1) * kIndexDim;
  V16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
  for (std::size_t i = 0; i < kIndexDim; i += 16) {
    const V16 k = load16(key + i);
    for (std::size_t g = 0; g < 4; ++g) sum[g] = fma16(load16(row[g] + i), k, sum[g]);
  }
  hn::StoreU(sum16x4(sum[0], sum[1], sum[2], sum[3]), Float4Tag(), out);
}

float score_f32(const float* q, const float* key, const float* weights, std::size_t heads) {
  float total = 0;
  for (std::size_t h = 0; h < heads; h += 4) {
    const std::size_t count = std::min<std::size_t>(4, heads - h);
    float dot[4];
    dots(q + h * kIndexDim, key, count, dot);
    for (std::size_t g = 0; g < count; ++g) total += std::max(dot[g], 0.0f) * weights[h + g];
  }
  return total;
}

float score_bf16(const float* q, const float* key, const float* weights, std::size_t heads) {
  float total = 0;
  for (std::size_t h = 0; h < heads; h += 4) {
    const std::size_t count = std::min<std::size_t>(4, heads - h);
    float dot[4];
    dots(q + h * kIndexDim, key, count, dot);
    for (std::size_t g = 0; g < count; ++g) {
      total += round_bf16(std::max(round_bf16(dot[g]), 0.0f) * weights[h + g]);
    }
  }
  return round_bf16(total);
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(score_f32);
HWY_EXPORT(score_bf16);

float index_score_f32(const float* q, const float* key, const float* weights, std::size_t heads) {
  return HWY_DYNAMIC_DISPATCH(score_f32)(q, key, weights, heads);
}
float index_score_bf16(const float* q, const float* key, const float* weights, std::size_t heads) {
  return HWY_DYNAMIC_DISPATCH(score_bf16)(q, key, weights, heads);
}

}  // namespace cupel
#endif  // HWY_ONCE
