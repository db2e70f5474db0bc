// FP4 products of a few rows in integers. Included once per Highway target.
//
// Where the 32 inputs of a block are integers q of one unit u, at most 15 bits wide, with the sum
// of |q| below 2^23 / 12, every partial sum of the block's chain is a multiple of u / 2 below 2^24
// of them: no step of the chain rounds, and any other way to the sum gives its bits. Quantised
// activations are nearly always so. A block that is not takes the chain.
#if defined(CUPEL_KERNELS_CPU_FP4_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CUPEL_KERNELS_CPU_FP4_INTEGERS_INL_H_
#undef CUPEL_KERNELS_CPU_FP4_INTEGERS_INL_H_
#else
#define CUPEL_KERNELS_CPU_FP4_INTEGERS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cupel/kernels/cpu/panel_decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

using Int16Tag = hn::Repartition<std::int16_t, FloatTag>;

// What value_pairs() returns is the codes' values times this.
constexpr float kIntegerScale = kParts == 1 ? 2.0f : 512.0f;

// For j = 0..3: lane i of out[j] holds the values of input indices 2 j + 1 (low half) and 2 j of
// output i, as 16 bits each.
HWY_INLINE void value_pairs(hn::Vec<UintTag> codes, hn::Vec<Int16Tag> (&out)[4]) {
  const Int16Tag d16;
#if HWY_MAX_BYTES >= 64
  // An index is the low five bits of 16: the fifth belongs to the next code and must not matter.
  alignas(64) static constexpr std::int16_t kTable[32] = {
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12,
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto table = hn::Load(d16, kTable);
  const auto pick = [&](hn::Vec<UintTag> index) HWY_ATTR {
    return hn::Vec<Int16Tag>{_mm512_permutexvar_epi16(index.raw, table.raw)};
  };
  out[0] = pick(codes);
  out[1] = pick(hn::ShiftRight<4>(codes));
  out[2] = pick(hn::ShiftRight<8>(codes));
  out[3] = pick(hn::ShiftRight<12>(codes));
#else
  // Bytes hold two codes of an output; each value goes to an upper byte.
  const hn::Repartition<std::int8_t, FloatTag> d8;
  alignas(16) static constexpr std::int8_t kTable[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                         0, -1, -2, -3, -4, -6, -8, -12};
  const auto table = hn::LoadDup128(d8, kTable);
  const auto nibble = hn::Set(UintTag(), 0x0f0f0f0fu);
  const auto upper = hn::BitCast(d16, hn::Set(UintTag(), 0xff00ff00u));
  const auto low =
      hn::BitCast(d16, hn::TableLookupBytes(table, hn::BitCast(d8, hn::And(codes, nibble))));
  const auto high = hn::BitCast(
      d16, hn::TableLookupBytes(table, hn::BitCast(d8, hn::And(hn::ShiftRight<4>(codes), nibble))));
  out[0] = hn::ShiftLeft<8>(low);
  out[1] = hn::ShiftLeft<8>(high);
  out[2] = hn::And(low, upper);
  out[3] = hn::And(high, upper);
#endif
}

// acc + a0 * b0 + a1 * b1 of each lane's two 16-bit halves.
HWY_INLINE hn::Vec<IntTag> add_pair_products(hn::Vec<Int16Tag> a, hn::Vec<Int16Tag> b,
                                             hn::Vec<IntTag> acc) {
#if HWY_MAX_BYTES >= 64
  return hn::Add(acc, hn::Vec<IntTag>{_mm512_madd_epi16(a.raw, b.raw)});
#else
  return hn::Add(acc, hn::Vec<IntTag>{_mm256_madd_epi16(a.raw, b.raw)});
#endif
}

// One block: totals[panel][row] += its sum. `pairs` [row][16] of this block, rows `pair_stride`
// apart.
template <std::size_t Panels, std::size_t Rows>
HWY_INLINE void integer_block(const PanelCodes* panels, std::size_t block,
                              const std::uint32_t* pairs, std::size_t pair_stride,
                              const float* units, std::size_t unit_stride, const ReadAhead& ahead,
                              float* totals) {
  constexpr std::size_t kBytes = PackedMatrix::kFp4Group / 2 * PackedMatrix::kPanel;
  hn::Vec<IntTag> sum[Panels][Rows][kParts];
  HWY_UNROLL(4)
  for (std::size_t p = 0; p < Panels; ++p) {
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < Rows; ++r) {
      CUPEL_EACH_PART(i) sum[p][r][i] = hn::Zero(IntTag());
    }
  }
  for (std::size_t step = 0; step < PackedMatrix::kFp4Group / Fp4::kStep; ++step) {
    const std::size_t at = block * kBytes + step * Fp4::kStepBytes;
    ahead.ask<Panels>(panels, at);
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < Panels; ++p) {
      const Fp4::Codes codes = Fp4::load(panels[p].codes + at);
      CUPEL_EACH_PART(i) {
        hn::Vec<Int16Tag> values[4];
        value_pairs(codes.part[i], values);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < Rows; ++r) {
          HWY_UNROLL(4)
          for (std::size_t j = 0; j < 4; ++j) {
            const auto x =
                hn::BitCast(Int16Tag(), hn::Set(UintTag(), pairs[r * pair_stride + step * 4 + j]));
            sum[p][r][i] = add_pair_products(values[j], x, sum[p][r][i]);
          }
        }
      }
    }
  }
  HWY_UNROLL(4)
  for (std::size_t p = 0; p < Panels; ++p) {
    const V16 scale = Fp4::scale(panels[p], block);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < Rows; ++r) {
      V16 exact;
      CUPEL_EACH_PART(i) exact.part[i] = hn::ConvertTo(FloatTag(), sum[p][r][i]);
      float* total = totals + (p * Rows + r) * PackedMatrix::kPanel;
      const V16 unit = mul16(scale, set16(units[r * unit_stride] * (1.0f / kIntegerScale)));
      store16(fma16(exact, unit, load16(total)), total);
    }
  }
}

// One row's blocks as integers: units[block] = u, or 0 where the block is not exact. k is a
// multiple of 32, values are zero or in [2^-60, 2^40].
inline void to_integers(const float* x, std::size_t k, std::uint32_t* pairs, float* units) {
  constexpr std::size_t kGroup = PackedMatrix::kFp4Group;
  constexpr float kLargestSum = 0x1p23f / 12;
  const FloatTag d;
  for (std::size_t block = 0; block < k / kGroup; ++block) {
    const float* from = x + block * kGroup;
    auto top = hn::Zero(d);
    for (std::size_t i = 0; i < kGroup; i += kLanes) {
      top = hn::Max(top, hn::Abs(hn::LoadU(d, from + i)));
    }
    const float largest = hn::GetLane(hn::MaxOfLanes(d, top));
    std::uint32_t* to = pairs + block * kGroup / 2;
    if (largest == 0) {
      units[block] = 1;
      std::fill_n(to, kGroup / 2, 0);
      continue;
    }
    // 2^14 <= largest / u < 2^15.
    const int exponent = std::ilogb(largest) - 14;
    const auto inverse = hn::Set(d, std::ldexp(1.0f, -exponent));
    auto off = hn::Zero(d), sum = hn::Zero(d);
    alignas(64) std::int32_t q[kGroup];
    for (std::size_t i = 0; i < kGroup; i += kLanes) {
      const auto v = hn::Mul(hn::LoadU(d, from + i), inverse);
      const auto whole = hn::Round(v);
      off = hn::Add(off, hn::Abs(hn::Sub(v, whole)));
      sum = hn::Add(sum, hn::Abs(whole));
      hn::Store(hn::ConvertTo(IntTag(), whole), IntTag(), q + i);
    }
    const bool exact = hn::GetLane(hn::SumOfLanes(d, off)) == 0 &&
                       hn::GetLane(hn::SumOfLanes(d, sum)) < kLargestSum;
    units[block] = exact ? std::ldexp(1.0f, exponent) : 0.0f;
    for (std::size_t i = 0; i < kGroup / 2; ++i) {
      to[i] = static_cast<std::uint32_t>(q[2 * i]) << 16 |
              (static_cast<std::uint32_t>(q[2 * i + 1]) & 0xffffu);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
