#include <algorithm>
#include <limits>

#include "cupel/attention/attend_row.h"
#include "cupel/attention/kv_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/attention/cpu/attend_packed.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kPackedBlock = 64;

void attend_packed_kernel(const AttendRowParams& p) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const std::size_t n = p.keys.size();
  const Float4Tag d4;
  float weights[4][kPackedBlock];
  for (std::size_t h = 0; h < p.heads; h += 4) {
    const float* q = p.q + h * kKvDim;
    float* out = p.out + h * kKvDim;
    std::fill_n(out, 4 * kKvDim, 0.0f);
    float top[4] = {kLowest, kLowest, kLowest, kLowest};
    float sum[4] = {};
    for (std::size_t begin = 0; begin < n; begin += kPackedBlock) {
      const std::size_t count = std::min(kPackedBlock, n - begin);
      for (auto& row : weights) std::fill(row + count, row + kPackedBlock, kLowest);
      for (std::size_t j = 0; j < count; ++j) {
        const float* key = p.keys[begin + j];
        // One dot a tile of 64 and head; the tiles are added in order.
        auto score = hn::Zero(d4);
        for (std::size_t t = 0; t < kKvDim; t += kKvTile) {
          V16 a = zero16(), b = zero16(), c = zero16(), e = zero16();
          for (std::size_t i = t; i < t + kKvTile; i += 16) {
            const V16 k = load16(key + i);
            a = fma16(load16(q + i), k, a);
            b = fma16(load16(q + kKvDim + i), k, b);
            c = fma16(load16(q + 2 * kKvDim + i), k, c);
            e = fma16(load16(q + 3 * kKvDim + i), k, e);
          }
          score = hn::Add(score, sum16x4(a, b, c, e));
        }
        float s[4];
        hn::StoreU(hn::Mul(score, hn::Set(d4, p.scale)), d4, s);
        for (std::size_t i = 0; i < 4; ++i) weights[i][j] = s[i];
      }
      float decay[4];
      for (std::size_t i = 0; i < 4; ++i) {
        const float next = std::max(top[i], *std::max_element(weights[i], weights[i] + count));
        decay[i] = exp_f32(top[i] - next);
        V16 block_sum = zero16();
        for (std::size_t j = 0; j < kPackedBlock; j += 16) {
          const V16 e = exp16(sub16(load16(weights[i] + j), set16(next)));
          block_sum = add16(block_sum, e);
          store16(p.round_bf16 ? round_bf16_16(e) : e, weights[i] + j);
        }
        sum[i] = sum[i] * decay[i] + sum16(block_sum);
        top[i] = next;
      }
      for (std::size_t d = 0; d < kKvDim; d += 16) {
        V16 o[4];
        for (std::size_t i = 0; i < 4; ++i) {
          o[i] = mul16(load16(out + i * kKvDim + d), set16(decay[i]));
        }
        for (std::size_t j = 0; j < count; ++j) {
          const V16 v = load16(p.keys[begin + j] + d);
          for (std::size_t i = 0; i < 4; ++i) o[i] = fma16(set16(weights[i][j]), v, o[i]);
        }
        for (std::size_t i = 0; i < 4; ++i) store16(o[i], out + i * kKvDim + d);
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const V16 reciprocal = set16(1.0f / (sum[i] + exp_f32(p.sink[h + i] - top[i])));
      for (std::size_t d = 0; d < kKvDim; d += 16) {
        const V16 y = mul16(load16(out + i * kKvDim + d), reciprocal);
        store16(p.round_bf16 ? round_bf16_16(y) : y, out + i * kKvDim + d);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(attend_packed_kernel);

void attend_row_packed(const AttendRowParams& params) {
  HWY_DYNAMIC_DISPATCH(attend_packed_kernel)(params);
}

}  // namespace cupel
#endif  // HWY_ONCE
