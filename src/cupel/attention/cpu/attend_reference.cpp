#include <algorithm>
#include <limits>

#include "cupel/attention/attend_row.h"
#include "cupel/attention/kv_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/attention/cpu/attend_reference.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

void attend_reference_kernel(const AttendRowParams& p) {
  const std::size_t n = p.keys.size();
  const std::size_t stride = (n + 15) / 16 * 16;
  p.scratch->resize(4 * stride);
  float* weights = p.scratch->data();  // [4 heads, stride]; -inf beyond n
  for (std::size_t h = 0; h < p.heads; h += 4) {
    const float* q = p.q + h * kKvDim;
    for (std::size_t i = 0; i < 4; ++i) {
      std::fill(weights + i * stride + n, weights + (i + 1) * stride,
                -std::numeric_limits<float>::infinity());
    }
    for (std::size_t j = 0; j < n; ++j) {
      const float* key = p.keys[j];
      V16 a = zero16(), b = zero16(), c = zero16(), e = zero16();
      for (std::size_t i = 0; i < kKvDim; i += 16) {
        const V16 k = load16(key + i);
        a = fma16(load16(q + i), k, a);
        b = fma16(load16(q + kKvDim + i), k, b);
        c = fma16(load16(q + 2 * kKvDim + i), k, c);
        e = fma16(load16(q + 3 * kKvDim + i), k, e);
      }
      float s[4];
      hn::StoreU(hn::Mul(sum16x4(a, b, c, e), hn::Set(Float4Tag(), p.scale)), Float4Tag(), s);
      for (std::size_t i = 0; i < 4; ++i) weights[i * stride + j] = s[i];
    }
    float denominator[4];
    for (std::size_t i = 0; i < 4; ++i) {
      float* w = weights + i * stride;
      const float top = *std::max_element(w, w + n);
      V16 sum = zero16();
      for (std::size_t j = 0; j < stride; j += 16) {
        const V16 e = exp16(sub16(load16(w + j), set16(top)));
        sum = add16(sum, e);
        store16(p.round_bf16 ? round_bf16_16(e) : e, w + j);
      }
      denominator[i] = sum16(sum) + exp_f32(p.sink[h + i] - top);
    }
    for (std::size_t d = 0; d < kKvDim; d += 16) {
      V16 o[4] = {zero16(), zero16(), zero16(), zero16()};
      for (std::size_t j = 0; j < n; ++j) {
        const V16 v = load16(p.keys[j] + d);
        for (std::size_t i = 0; i < 4; ++i) o[i] = fma16(set16(weights[i * stride + j]), v, o[i]);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        const V16 y = div16(o[i], set16(denominator[i]));
        store16(p.round_bf16 ? round_bf16_16(y) : y, p.out + (h + i) * kKvDim + d);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(attend_reference_kernel);

void attend_row_reference(const AttendRowParams& params) {
  HWY_DYNAMIC_DISPATCH(attend_reference_kernel)(params);
}

}  // namespace cupel
#endif  // HWY_ONCE
