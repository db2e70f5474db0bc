// The codes of a panel as fp32, sixteen outputs at a time. Included once per Highway target.
#if defined(CUPEL_KERNELS_CPU_PANEL_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CUPEL_KERNELS_CPU_PANEL_DECODE_INL_H_
#undef CUPEL_KERNELS_CPU_PANEL_DECODE_INL_H_
#else
#define CUPEL_KERNELS_CPU_PANEL_DECODE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cupel/formats/e4m3.h"
#include "cupel/kernels/cpu/simd-inl.h"
#include "cupel/kernels/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

// Codes and scales of one panel from some input index on, packed.
struct PanelCodes {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* fp4_scales = nullptr;
  const float* fp8_scales = nullptr;
};

// Each format: kStep input indices at a time, kStepBytes bytes of codes; their values divided by a
// power of two that scale() makes good.

struct Fp4 {
  static constexpr std::size_t kStep = 2, kStepBytes = 16, kBlock = PackedMatrix::kFp4Group;
  static constexpr bool kScaled = true;

#if HWY_MAX_BYTES >= 64
  // A lane's index is its low four bits.
  static HWY_INLINE void decode(const std::uint8_t* codes, V16 (&w)[kStep]) {
    alignas(64) static constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};
    const FloatTag d;
    const auto table = hn::Load(d, kValues);
    const auto bytes =
        hn::PromoteTo(UintTag(), hn::LoadU(hn::Rebind<std::uint8_t, UintTag>(), codes));
    w[0].part[0] = hn::TableLookupLanes(table, hn::Indices512<float>{bytes.raw});
    w[1].part[0] = hn::TableLookupLanes(table, hn::Indices512<float>{hn::ShiftRight<4>(bytes).raw});
  }
  static constexpr float kUnit = 1.0f;
#else
  static HWY_INLINE void decode(const std::uint8_t* codes, V16 (&w)[kStep]) {
    const hn::FixedTag<std::int8_t, 16> d8;
    const hn::FixedTag<std::uint8_t, 16> du8;
    alignas(16) static constexpr std::int8_t kDoubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                             0, -1, -2, -3, -4, -6, -8, -12};
    const auto table = hn::Load(d8, kDoubled);
    const auto bytes = hn::LoadU(du8, codes);
    const auto low = hn::And(bytes, hn::Set(du8, std::uint8_t{0x0f}));
    const auto high = hn::And(
        hn::BitCast(du8, hn::ShiftRight<4>(hn::BitCast(hn::FixedTag<std::uint16_t, 8>(), bytes))),
        hn::Set(du8, std::uint8_t{0x0f}));
    spread(hn::TableLookupBytes(table, hn::BitCast(d8, low)), w[0]);
    spread(hn::TableLookupBytes(table, hn::BitCast(d8, high)), w[1]);
  }
  static constexpr float kUnit = 0.5f;

 private:
  template <typename V>
  static HWY_INLINE void spread(V values, V16& w) {
    const hn::FixedTag<std::int8_t, 8> half;
    const hn::FixedTag<std::int8_t, 16> d8;
    w.part[0] = hn::ConvertTo(FloatTag(), hn::PromoteTo(IntTag(), hn::LowerHalf(half, values)));
    w.part[1] = hn::ConvertTo(
        FloatTag(),
        hn::PromoteTo(IntTag(), hn::LowerHalf(half, hn::ShiftRightBytes<8>(d8, values))));
  }

 public:
#endif

  // 2^(byte - 127): the byte is the exponent field, except 0, which is 2^-127.
  static HWY_INLINE V16 scale(const PanelCodes& panel, std::size_t block) {
    const std::uint8_t* bytes = panel.fp4_scales + block * PackedMatrix::kPanel;
    V16 r;
    CUPEL_EACH_PART(i) {
      const auto e = hn::PromoteTo(
          UintTag(), hn::LoadU(hn::Rebind<std::uint8_t, UintTag>(), bytes + i * kLanes));
      const auto bits = hn::IfThenElse(hn::Eq(e, hn::Zero(UintTag())),
                                       hn::Set(UintTag(), 0x00400000u), hn::ShiftLeft<23>(e));
      r.part[i] = hn::Mul(hn::BitCast(FloatTag(), bits), hn::Set(FloatTag(), kUnit));
    }
    return r;
  }
};

struct Fp8 {
  static constexpr std::size_t kStep = 1, kStepBytes = 16, kBlock = PackedMatrix::kFp8Block;
  static constexpr bool kScaled = true;
  static constexpr float kUnit = 256.0f;

  // As an IEEE half: exponent bias 15 in place of 7, so 2^8 too small; subnormals included.
  static HWY_INLINE void decode(const std::uint8_t* codes, V16 (&w)[kStep]) {
    const hn::CappedTag<std::int16_t, kLanes> d16;
    const hn::Rebind<std::int8_t, decltype(d16)> d8;
    const hn::Rebind<hwy::float16_t, FloatTag> dh;
    CUPEL_EACH_PART(i) {
      const auto wide = hn::PromoteTo(
          d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(codes) + i * kLanes));
      // The sign extension fills bits 14 and 15; 14 belongs to the exponent.
      const auto half =
          hn::And(hn::ShiftLeft<7>(wide), hn::Set(d16, static_cast<std::int16_t>(0xbfff)));
      w[0].part[i] = hn::PromoteTo(FloatTag(), hn::BitCast(dh, half));
    }
  }
  static HWY_INLINE V16 scale(const PanelCodes& panel, std::size_t block) {
    return set16(panel.fp8_scales[block] * kUnit);
  }
};

struct Bf16 {
  static constexpr std::size_t kStep = 1, kStepBytes = 32, kBlock = 64;
  static constexpr bool kScaled = false;
  static HWY_INLINE void decode(const std::uint8_t* codes, V16 (&w)[kStep]) {
    w[0] = decode_bf16_16(reinterpret_cast<const std::uint16_t*>(codes));
  }
  static HWY_INLINE V16 scale(const PanelCodes&, std::size_t) { return set16(1.0f); }
};

struct F32 {
  static constexpr std::size_t kStep = 1, kStepBytes = 64, kBlock = 64;
  static constexpr bool kScaled = false;
  static HWY_INLINE void decode(const std::uint8_t* codes, V16 (&w)[kStep]) {
    w[0] = load16(reinterpret_cast<const float*>(codes));
  }
  static HWY_INLINE V16 scale(const PanelCodes&, std::size_t) { return set16(1.0f); }
};

// `count` input indices, a multiple of kStep, from the start of a block on, into [count][16].
template <typename Format>
void decode_panel(const PanelCodes& panel, std::size_t count, float* out) {
  for (std::size_t begin = 0; begin < count; begin += Format::kBlock) {
    const std::size_t end = std::min(count, begin + Format::kBlock);
    const V16 scale = Format::scale(panel, begin / Format::kBlock);
    for (std::size_t k = begin; k < end; k += Format::kStep) {
      V16 w[Format::kStep];
      Format::decode(panel.codes + k / Format::kStep * Format::kStepBytes, w);
      for (std::size_t s = 0; s < Format::kStep; ++s) {
        if constexpr (Format::kScaled) w[s] = mul16(w[s], scale);
        store16(w[s], out + (k + s) * PackedMatrix::kPanel);
      }
    }
  }
}

// FP8 where a scale times 256 overflows, and would make zeros NaN.
inline void decode_extreme_fp8(const PanelCodes& panel, std::size_t count, float* out) {
  for (std::size_t k = 0; k < count; ++k) {
    const float scale = panel.fp8_scales[k / PackedMatrix::kFp8Block];
    for (std::size_t i = k * PackedMatrix::kPanel; i < (k + 1) * PackedMatrix::kPanel; ++i) {
      out[i] = e4m3_to_float(panel.codes[i]) * scale;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
