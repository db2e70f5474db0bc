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

// Heads and keys of a register tile: dots side by side, so that a load serves several.
constexpr std::size_t kTileHeads = kParts == 1 ? 4 : 1;
constexpr std::size_t kTileKeys = 4;

// As the scalar round_bf16, without its care for NaN, which arithmetic makes quiet anyway.
HWY_INLINE Float4 round4(Float4 v) {
  const Float4Tag d;
  const hn::RebindToUnsigned<Float4Tag> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded =
      hn::And(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu))), hn::Set(du, 0xffff0000u));
  return hn::IfThenElse(hn::IsNaN(v), v, hn::BitCast(d, rounded));
}

// totals[j] += relu(dot) * weight for heads [first, first + heads) in turn and kTileKeys keys.
template <bool kRound>
HWY_INLINE void add_heads(const IndexScoreParams& p, std::size_t first, std::size_t heads,
                          const float* const* keys, float* totals) {
  const Float4Tag d4;
  V16 sum[kTileHeads][kTileKeys];
  HWY_UNROLL(4)
  for (std::size_t h = 0; h < kTileHeads; ++h) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kTileKeys; ++j) sum[h][j] = zero16();
  }
  const float* row[kTileHeads];  // heads that are not there repeat the last
  for (std::size_t h = 0; h < kTileHeads; ++h) {
    row[h] = p.q + (first + std::min(h, heads - 1)) * kIndexDim;
  }
  for (std::size_t i = 0; i < kIndexDim; i += 16) {
    V16 k[kTileKeys];
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kTileKeys; ++j) k[j] = load16(keys[j] + i);
    HWY_UNROLL(4)
    for (std::size_t h = 0; h < kTileHeads; ++h) {
      const V16 q = load16(row[h] + i);
      HWY_UNROLL(4)
      for (std::size_t j = 0; j < kTileKeys; ++j) sum[h][j] = fma16(q, k[j], sum[h][j]);
    }
  }
  auto total = hn::LoadU(d4, totals);
  for (std::size_t h = 0; h < heads; ++h) {
    auto dot = sum16x4(sum[h][0], sum[h][1], sum[h][2], sum[h][3]);
    if constexpr (kRound) dot = round4(dot);
    dot = hn::IfThenElse(hn::Lt(dot, hn::Zero(d4)), hn::Zero(d4), dot);
    auto term = hn::Mul(dot, hn::Set(d4, p.weights[first + h]));
    if constexpr (kRound) term = round4(term);
    total = hn::Add(total, term);
  }
  hn::StoreU(total, d4, totals);
}

template <bool kRound>
HWY_INLINE void score_tile(const IndexScoreParams& p) {
  float totals[kIndexKeyTile] = {};
  for (std::size_t h = 0; h < p.heads; h += kTileHeads) {
    const std::size_t heads = std::min(kTileHeads, p.heads - h);
    for (std::size_t j = 0; j < p.count; j += kTileKeys) {
      const float* keys[kTileKeys];  // as above
      for (std::size_t i = 0; i < kTileKeys; ++i) {
        keys[i] = p.keys + std::min(j + i, p.count - 1) * kIndexDim;
      }
      add_heads<kRound>(p, h, heads, keys, totals + j);
    }
  }
  for (std::size_t j = 0; j < p.count; ++j) {
    p.scores[j] = kRound ? round_bf16(totals[j]) : totals[j];
  }
}

void scores_f32(const IndexScoreParams& p) {
  score_tile<false>(p);
}
void scores_bf16(const IndexScoreParams& p) {
  score_tile<true>(p);
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(scores_f32);
HWY_EXPORT(scores_bf16);

void index_scores_f32(const IndexScoreParams& params) {
  HWY_DYNAMIC_DISPATCH(scores_f32)(params);
}
void index_scores_bf16(const IndexScoreParams& params) {
  HWY_DYNAMIC_DISPATCH(scores_bf16)(params);
}

}  // namespace cupel
#endif  // HWY_ONCE
