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
#include "cupel/kernels/cpu/panel_codes.h"
#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

// Each format: kStep input indices in kStepBytes bytes. load() reads them, at() gives the values of
// one of them, divided by a power of two that scale() makes good.

struct Fp4 {
  static constexpr std::size_t kStep = 8, kStepBytes = 64, kBlock = PackedMatrix::kFp4Group;
  static constexpr InPlaceOrder kInPlace = InPlaceOrder::kPacked;
  static constexpr bool kScaled = true;
  static constexpr float kUnit = 1.0f;
  struct Codes {
    hn::Vec<UintTag> part[kParts];
  };

  static HWY_INLINE Codes load(const std::uint8_t* codes) {
    Codes c;
    CUPEL_EACH_PART(i) {
      c.part[i] = hn::BitCast(
          UintTag(), hn::LoadU(hn::Repartition<std::uint8_t, UintTag>(), codes + i * kLanes * 4));
    }
    return c;
  }

  static HWY_INLINE V16 at(const Codes& codes, std::size_t s) {
    const FloatTag d;
    V16 w;
    CUPEL_EACH_PART(i) {
      const auto code =
          hn::ShiftRightSame(codes.part[i], static_cast<int>(PackedMatrix::fp4_shift(s)));
#if HWY_MAX_BYTES >= 64
      // The instruction takes the low four bits of a lane as its index.
      alignas(64) static constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                        4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                        -2.0f, -3.0f, -4.0f, -6.0f};
      w.part[i] = hn::TableLookupLanes(hn::Load(d, kValues), hn::Indices512<float>{code.raw});
#else
      // The low three bits; the fourth is the sign.
      alignas(32) static constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f,
                                                           2.0f, 3.0f, 4.0f, 6.0f};
      const auto magnitude =
          hn::TableLookupLanes(hn::Load(d, kMagnitudes), hn::Indices256<float>{code.raw});
      const auto sign =
          hn::And(hn::ShiftLeft<28>(code), hn::Set(UintTag(), std::uint32_t{0x80000000u}));
      w.part[i] = hn::Xor(magnitude, hn::BitCast(d, sign));
#endif
    }
    return w;
  }

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
  static constexpr InPlaceOrder kInPlace = InPlaceOrder::kPacked;
  static constexpr bool kScaled = true;
  static constexpr float kUnit = 256.0f;
  using Codes = const std::uint8_t*;
  static HWY_INLINE Codes load(const std::uint8_t* codes) { return codes; }

  // As an IEEE half: exponent bias 15 in place of 7, so 2^8 too small; subnormals included.
  static HWY_INLINE V16 at(Codes codes, std::size_t) {
    const hn::FixedTag<std::int16_t, 16> d16;
    const hn::FixedTag<std::int8_t, 16> d8;
    const hn::Rebind<hwy::float16_t, FloatTag> dh;
    const auto wide =
        hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(codes)));
    // The sign extension fills bits 14 and 15; 14 belongs to the exponent.
    const auto half =
        hn::And(hn::ShiftLeft<7>(wide), hn::Set(d16, static_cast<std::int16_t>(0xbfff)));
    V16 w;
#if HWY_MAX_BYTES >= 64
    w.part[0] = hn::PromoteTo(FloatTag(), hn::BitCast(dh, half));
#else
    const hn::FixedTag<std::int16_t, 8> d8x16;
    w.part[0] = hn::PromoteTo(FloatTag(), hn::BitCast(dh, hn::LowerHalf(d8x16, half)));
    w.part[1] = hn::PromoteTo(FloatTag(), hn::BitCast(dh, hn::UpperHalf(d8x16, half)));
#endif
    return w;
  }
  static HWY_INLINE V16 scale(const PanelCodes& panel, std::size_t block) {
    return set16(panel.fp8_scales[block] * kUnit);
  }
};

struct Bf16 {
  static constexpr std::size_t kStep = 1, kStepBytes = 32, kBlock = 64;
  static constexpr InPlaceOrder kInPlace = InPlaceOrder::kPacked;
  static constexpr bool kScaled = false;
  using Codes = const std::uint8_t*;
  static HWY_INLINE Codes load(const std::uint8_t* codes) { return codes; }
  static HWY_INLINE V16 at(Codes codes, std::size_t) {
    return decode_bf16_16(reinterpret_cast<const std::uint16_t*>(codes));
  }
};

// In place: the words of two, the lower index in the lower half.
struct Bf16Words {
  static constexpr std::size_t kStep = 2, kStepBytes = 64, kBlock = 64;
  static constexpr InPlaceOrder kInPlace = InPlaceOrder::kWords;
  static constexpr bool kScaled = false;
  struct Codes {
    hn::Vec<UintTag> part[kParts];
  };
  static HWY_INLINE Codes load(const std::uint8_t* codes) {
    Codes c;
    CUPEL_EACH_PART(i) {
      c.part[i] = hn::LoadU(UintTag(), reinterpret_cast<const std::uint32_t*>(codes) + i * kLanes);
    }
    return c;
  }
  static HWY_INLINE V16 at(const Codes& codes, std::size_t s) {
    V16 w;
    CUPEL_EACH_PART(i) {
      const auto bits = s == 0 ? hn::ShiftLeft<16>(codes.part[i])
                               : hn::And(codes.part[i], hn::Set(UintTag(), 0xffff0000u));
      w.part[i] = hn::BitCast(FloatTag(), bits);
    }
    return w;
  }
};

struct F32 {
  static constexpr std::size_t kStep = 1, kStepBytes = 64, kBlock = 64;
  static constexpr InPlaceOrder kInPlace = InPlaceOrder::kPacked;
  static constexpr bool kScaled = false;
  using Codes = const std::uint8_t*;
  static HWY_INLINE Codes load(const std::uint8_t* codes) { return codes; }
  static HWY_INLINE V16 at(Codes codes, std::size_t) {
    return load16(reinterpret_cast<const float*>(codes));
  }
};

// `count` input indices, a multiple of kStep, from the start of a block on, into [count][16].
template <typename Format>
void decode_panel(const PanelCodes& panel, std::size_t count, float* out) {
  for (std::size_t begin = 0; begin < count; begin += Format::kBlock) {
    const std::size_t end = std::min(count, begin + Format::kBlock);
    V16 scale = set16(1.0f);
    if constexpr (Format::kScaled) scale = Format::scale(panel, begin / Format::kBlock);
    for (std::size_t k = begin; k < end; k += Format::kStep) {
      const auto codes = Format::load(panel.codes + k / Format::kStep * Format::kStepBytes);
      HWY_UNROLL(8)
      for (std::size_t s = 0; s < Format::kStep; ++s) {
        V16 w = Format::at(codes, s);
        if constexpr (Format::kScaled) w = mul16(w, scale);
        store16(w, out + (k + s) * PackedMatrix::kPanel);
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
