// Sixteen fp32 lanes, whatever the instruction set: one AVX-512 register or two AVX2 registers.
//
// Every vector kernel is written on this type, so the element-to-lane map and the reduction tree
// do not depend on the instruction set (DESIGN section 5). Included once per Highway target.
#if defined(CUPEL_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CUPEL_KERNELS_CPU_SIMD_INL_H_
#undef CUPEL_KERNELS_CPU_SIMD_INL_H_
#else
#define CUPEL_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "cupel/kernels/exp.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using IntTag = hn::RebindToSigned<FloatTag>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr std::size_t kLanes = hn::MaxLanes(FloatTag());
inline constexpr std::size_t kParts = 16 / kLanes;
static_assert(kParts * kLanes == 16);

struct V16 {
  FloatVec part[kParts];
};

#define CUPEL_EACH_PART(i) for (std::size_t i = 0; i < kParts; ++i)

HWY_INLINE V16 zero16() {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Zero(FloatTag());
  return r;
}
HWY_INLINE V16 set16(float x) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Set(FloatTag(), x);
  return r;
}
HWY_INLINE V16 load16(const float* p) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::LoadU(FloatTag(), p + i * kLanes);
  return r;
}
HWY_INLINE void store16(const V16& v, float* p) {
  CUPEL_EACH_PART(i) hn::StoreU(v.part[i], FloatTag(), p + i * kLanes);
}
HWY_INLINE V16 add16(const V16& a, const V16& b) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Add(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 sub16(const V16& a, const V16& b) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Sub(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 mul16(const V16& a, const V16& b) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Mul(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 div16(const V16& a, const V16& b) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Div(a.part[i], b.part[i]);
  return r;
}
HWY_INLINE V16 max16(const V16& a, const V16& b) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::Max(a.part[i], b.part[i]);
  return r;
}
// a * b + c with one rounding.
HWY_INLINE V16 fma16(const V16& a, const V16& b, const V16& c) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = hn::MulAdd(a.part[i], b.part[i], c.part[i]);
  return r;
}

// Round to nearest bf16, ties to even, kept as fp32. NaNs made by arithmetic stay NaN.
HWY_INLINE FloatVec round_bf16_part(FloatVec v) {
  const UintTag du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffu)));
  return hn::BitCast(FloatTag(), hn::And(rounded, hn::Set(du, 0xffff0000u)));
}
HWY_INLINE V16 round_bf16_16(const V16& v) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = round_bf16_part(v.part[i]);
  return r;
}

// exp(x), the same operations as the scalar exp_f32 of kernels/exp.h, bit for bit.
HWY_INLINE FloatVec exp_part(FloatVec x) {
  using namespace exp_constants;
  const FloatTag d;
  const IntTag di;
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, kLog2E)));
  auto r = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, kLn2Low), r);
  auto p = hn::Set(d, kC6);
  p = hn::MulAdd(p, r, hn::Set(d, kC5));
  p = hn::MulAdd(p, r, hn::Set(d, kC4));
  p = hn::MulAdd(p, r, hn::Set(d, kC3));
  p = hn::MulAdd(p, r, hn::Set(d, kC2));
  p = hn::MulAdd(p, r, hn::Set(d, kC1));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // 2^n in two halves, so that n = 128 does not overflow before p < 1 brings it back.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(di, 127);
  const auto s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto s2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  auto y = hn::Mul(hn::Mul(p, s1), s2);
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, kMin)), hn::Zero(d), y);
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, kMax)), hn::Inf(d), y);
}
HWY_INLINE V16 exp16(const V16& v) {
  V16 r;
  CUPEL_EACH_PART(i) r.part[i] = exp_part(v.part[i]);
  return r;
}

using Float4Tag = hn::FixedTag<float, 4>;
using Float4 = hn::Vec<Float4Tag>;

// Lanes i, i+4, i+8, i+12 of v as (v[i] + v[i+8]) + (v[i+4] + v[i+12]).
HWY_INLINE Float4 fold4(const V16& v) {
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<float, 8> d8;
  const auto low = hn::LowerHalf(d8, v.part[0]);
  const auto high = hn::UpperHalf(d8, v.part[0]);
#else
  const auto low = v.part[0];
  const auto high = v.part[1];
#endif
  const auto eight = hn::Add(low, high);
  return hn::Add(hn::LowerHalf(Float4Tag(), eight), hn::UpperHalf(Float4Tag(), eight));
}

// The sums of four vectors at once; each sum is the fixed tree of sum16.
HWY_INLINE Float4 sum16x4(const V16& a, const V16& b, const V16& c, const V16& e) {
  const Float4Tag d4;
  const hn::Repartition<double, Float4Tag> dd;
  const auto fa = fold4(a), fb = fold4(b), fc = fold4(c), fe = fold4(e);
  // Transpose, then (x0 + x2) + (x1 + x3).
  const auto ab_low = hn::InterleaveLower(d4, fa, fb);   // a0 b0 a1 b1
  const auto ce_low = hn::InterleaveLower(d4, fc, fe);   // c0 e0 c1 e1
  const auto ab_high = hn::InterleaveUpper(d4, fa, fb);  // a2 b2 a3 b3
  const auto ce_high = hn::InterleaveUpper(d4, fc, fe);
  const auto ab = hn::Add(ab_low, ab_high);  // a02 b02 a13 b13
  const auto ce = hn::Add(ce_low, ce_high);
  const auto even =
      hn::BitCast(d4, hn::InterleaveLower(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce)));
  const auto odd =
      hn::BitCast(d4, hn::InterleaveUpper(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce)));
  return hn::Add(even, odd);
}

// The sum of the sixteen lanes by a fixed tree: distance 8, then 4, 2, 1.
HWY_INLINE float sum16(const V16& v) {
  float x[4];
  hn::StoreU(fold4(v), Float4Tag(), x);
  return (x[0] + x[2]) + (x[1] + x[3]);
}

// Sixteen e4m3 codes as fp32 (no NaN code among them), times `scale`.
HWY_INLINE V16 decode_e4m3_16(const std::uint8_t* codes, const V16& scale_times_256) {
  const hn::CappedTag<std::uint16_t, kLanes> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  V16 r;
  CUPEL_EACH_PART(i) {
    const auto u = hn::PromoteTo(d16, hn::LoadU(d8, codes + i * kLanes));
    // As an IEEE half: exponent bias 15 in place of 7, so 2^8 too small; subnormals included.
    const auto sign = hn::ShiftLeft<8>(hn::And(u, hn::Set(d16, std::uint16_t{0x80})));
    const auto magnitude = hn::ShiftLeft<7>(hn::And(u, hn::Set(d16, std::uint16_t{0x7f})));
    const auto half = hn::BitCast(dh, hn::Or(sign, magnitude));
    r.part[i] = hn::Mul(hn::PromoteTo(FloatTag(), half), scale_times_256.part[i]);
  }
  return r;
}

// The e4m3 value nearest to y, |y| <= 448: ties to even. From 2^-6 up three mantissa bits are kept;
// below, the step is 2^-9, rounded by adding and taking away 1.5 * 2^14.
HWY_INLINE FloatVec round_e4m3_part(FloatVec y) {
  const FloatTag d;
  const UintTag du;
  const auto bits = hn::BitCast(du, y);
  const auto odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(du, 1u));
  const auto kept =
      hn::And(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7ffffu))), hn::Set(du, 0xfff00000u));
  const auto magic = hn::Set(d, 24576.0f);
  const auto fixed = hn::CopySign(hn::Sub(hn::Add(y, magic), magic), y);
  return hn::IfThenElse(hn::Lt(hn::Abs(y), hn::Set(d, 0x1p-6f)), fixed, hn::BitCast(d, kept));
}

// Sixteen bf16 values as fp32.
HWY_INLINE V16 decode_bf16_16(const std::uint16_t* bits) {
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  V16 r;
  CUPEL_EACH_PART(i) {
    const auto wide = hn::PromoteTo(UintTag(), hn::LoadU(d16, bits + i * kLanes));
    r.part[i] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(wide));
  }
  return r;
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
