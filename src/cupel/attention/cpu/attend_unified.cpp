#include <algorithm>
#include <limits>

#include "cupel/attention/attend_row.h"
#include "cupel/attention/kv_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/attention/cpu/attend_unified.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kUnifiedBlock = 16;

void attend_unified_kernel(const AttendRowParams& p) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const std::size_t n = p.keys.size();
  for (std::size_t h = 0; h < p.heads; h += 4) {
    const float* q = p.q + h * kKvDim;
    float* out = p.out + h * kKvDim;
    std::fill_n(out, 4 * kKvDim, 0.0f);
    float top[4] = {kLowest, kLowest, kLowest, kLowest};
    float sum[4] = {};
    for (std::size_t begin = 0; begin < n; begin += kUnifiedBlock) {
      const std::size_t count = std::min(kUnifiedBlock, n - begin);
      float weights[4][kUnifiedBlock];
      for (auto& row : weights) std::fill(row + count, row + kUnifiedBlock, kLowest);
      for (std::size_t j = 0; j < count; ++j) {
        const float* key = p.keys[begin + j];
        V16 dot[4] = {zero16(), zero16(), zero16(), zero16()};
        for (std::size_t i = 0; i < kKvDim; i += 16) {
          const V16 k = load16(key + i);
          for (std::size_t g = 0; g < 4; ++g) dot[g] = fma16(load16(q + g * kKvDim + i), k, dot[g]);
        }
        float s[4];
        hn::StoreU(hn::Mul(sum16x4(dot[0], dot[1], dot[2], dot[3]), hn::Set(Float4Tag(), p.scale)),
                   Float4Tag(), s);
        for (std::size_t g = 0; g < 4; ++g) weights[g][j] = s[g];
      }
      float decay[4];
      for (std::size_t g = 0; g < 4; ++g) {
        const float next = std::max(top[g], *std::max_element(weights[g], weights[g] + count));
        const V16 e = exp16(sub16(load16(weights[g]), set16(next)));
        decay[g] = exp_f32(top[g] - next);
        sum[g] = sum[g] * decay[g] + sum16(e);
        store16(p.round_bf16 ? round_bf16_16(e) : e, weights[g]);
        top[g] = next;
      }
      for (std::size_t d = 0; d < kKvDim; d += 16) {
        V16 o[4];
        for (std::size_t g = 0; g < 4; ++g) {
          o[g] = mul16(load16(out + g * kKvDim + d), set16(decay[g]));
        }
        for (std::size_t j = 0; j < count; ++j) {
          const V16 v = load16(p.keys[begin + j] + d);
          for (std::size_t g = 0; g < 4; ++g) o[g] = fma16(set16(weights[g][j]), v, o[g]);
        }
        for (std::size_t g = 0; g < 4; ++g) store16(o[g], out + g * kKvDim + d);
      }
    }
    // The sink is one more key, without a value.
    for (std::size_t g = 0; g < 4; ++g) {
      const float last = std::max(top[g], p.sink[h + g]);
      const float decay = exp_f32(top[g] - last);
      const V16 denominator = set16(sum[g] * decay + exp_f32(p.sink[h + g] - last));
      for (std::size_t d = 0; d < kKvDim; d += 16) {
        float* at = out + g * kKvDim + d;
        const V16 y = div16(mul16(load16(at), set16(decay)), denominator);
        store16(p.round_bf16 ? round_bf16_16(y) : y, at);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(attend_unified_kernel);

void attend_row_unified(const AttendRowParams& params) {
  HWY_DYNAMIC_DISPATCH(attend_unified_kernel)(params);
}

}  // namespace cupel
#endif  // HWY_ONCE
