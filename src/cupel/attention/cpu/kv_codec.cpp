#include "cupel/attention/kv_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/attention/cpu/kv_codec.cpp"
#include <hwy/foreach_target.h>

#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

// Not finite if an element is not: bit patterns without sign order as the magnitudes do, with NaN
// above infinity.
HWY_INLINE float amax_of(const float* x, std::size_t count, float floor) {
  const FloatTag d;
  const IntTag di;
  auto top = hn::BitCast(di, hn::Set(d, floor));
  for (std::size_t i = 0; i < count; i += kLanes) {
    top = hn::Max(top, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, top)));
}

// A NaN or an infinity poisons its group (formats/quantise.h).
HWY_INLINE bool poisoned(float amax) {
  return !(amax <= std::numeric_limits<float>::max());
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The exponent field (biased by 127) of the smallest power of two s with amax / s <= limit, for a
// finite amax.
HWY_INLINE std::uint32_t scale_field(float amax, float inverse_limit) {
  const auto bits = std::bit_cast<std::uint32_t>(amax * inverse_limit);
  return (bits >> 23) + ((bits & 0x7fffffu) != 0 ? 1 : 0);
}

HWY_INLINE float power_of_field(std::uint32_t field) {
  return std::bit_cast<float>(field << 23);
}

constexpr float kInverse448 = 0x1.24924ap-9f;
constexpr float kInverse6 = 0x1.555556p-3f;

HWY_INLINE FloatVec to_e4m3_grid(FloatVec x, float inverse_scale) {
  const FloatTag d;
  const auto y = hn::Mul(x, hn::Set(d, inverse_scale));
  return round_e4m3_part(hn::Min(hn::Max(y, hn::Set(d, -448.0f)), hn::Set(d, 448.0f)));
}

// Codes of values that are on the grid.
HWY_INLINE void store_codes(FloatVec grid, std::uint8_t* out) {
  const FloatTag d;
  const UintTag du;
  const IntTag di;
  const auto bits = hn::BitCast(du, grid);
  const auto magnitude = hn::Abs(grid);
  const auto normal =
      hn::Sub(hn::And(hn::ShiftRight<20>(bits), hn::Set(du, 0x7ffu)), hn::Set(du, 120u << 3));
  const auto subnormal = hn::BitCast(du, hn::ConvertTo(di, hn::Mul(magnitude, hn::Set(d, 512.0f))));
  const auto small = hn::RebindMask(du, hn::Lt(magnitude, hn::Set(d, 0x1p-6f)));
  const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80u));
  const auto code = hn::Or(hn::IfThenElse(small, subnormal, normal), sign);
  hn::StoreU(hn::U8FromU32(code), hn::Rebind<std::uint8_t, UintTag>(), out);
}

HWY_INLINE void encode_bf16_bytes(const float* in, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; i += 16) {
    float rounded[16];
    store16(round_bf16_16(load16(in + i)), rounded);
    std::uint16_t bits[16];
    for (std::size_t l = 0; l < 16; ++l) {
      bits[l] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded[l]) >> 16);
    }
    std::memcpy(out + 2 * i, bits, sizeof bits);
  }
}

HWY_INLINE void decode_bf16_bytes(const std::byte* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; i += 16) {
    std::uint16_t bits[16];
    std::memcpy(bits, in + 2 * i, sizeof bits);
    store16(decode_bf16_16(bits), out + i);
  }
}

void encode_fp8(const float* row, std::uint8_t* nope, std::uint8_t* scales, std::byte* rope) {
  const FloatTag d;
  for (std::size_t t = 0; t < kKvTiles; ++t) {
    const float* x = row + t * kKvTile;
    const float amax = amax_of(x, kKvTile, 1e-4f);
    if (poisoned(amax)) {
      scales[t] = kE8m0Nan;
      std::fill_n(nope + t * kKvTile, kKvTile, kE4m3Nan);
      continue;
    }
    const std::uint32_t field = scale_field(amax, kInverse448);
    scales[t] = static_cast<std::uint8_t>(field);
    const float inverse = power_of_field(254 - field);
    for (std::size_t i = 0; i < kKvTile; i += kLanes) {
      store_codes(to_e4m3_grid(hn::LoadU(d, x + i), inverse), nope + t * kKvTile + i);
    }
  }
  encode_bf16_bytes(row + kNopeDim, kRopeDim, rope);
}

void decode_fp8(const std::uint8_t* nope, const std::uint8_t* scales, const std::byte* rope,
                float* row) {
  for (std::size_t t = 0; t < kKvTiles; ++t) {
    // Two products: 256 times the scale may be infinite.
    const V16 scale = set16(e8m0_to_float(scales[t]));
    for (std::size_t i = 0; i < kKvTile; i += 16) {
      const V16 grid = decode_e4m3_16(nope + t * kKvTile + i, set16(256.0f));
      store16(mul16(grid, scale), row + t * kKvTile + i);
    }
  }
  decode_bf16_bytes(rope, kRopeDim, row + kNopeDim);
}

void fake_quantise(const float* row, float* out) {
  const FloatTag d;
  for (std::size_t t = 0; t < kKvTiles; ++t) {
    const float* x = row + t * kKvTile;
    const float amax = amax_of(x, kKvTile, 1e-4f);
    if (poisoned(amax)) {
      std::fill_n(out + t * kKvTile, kKvTile, kNan);
      continue;
    }
    const std::uint32_t field = scale_field(amax, kInverse448);
    const float inverse = power_of_field(254 - field);
    const auto scale = hn::Set(d, power_of_field(field));
    for (std::size_t i = 0; i < kKvTile; i += kLanes) {
      const auto grid = to_e4m3_grid(hn::LoadU(d, x + i), inverse);
      hn::StoreU(hn::Mul(grid, scale), d, out + t * kKvTile + i);
    }
  }
  std::copy_n(row + kNopeDim, kRopeDim, out + kNopeDim);
}

void encode_bf16_row(const float* row, std::byte* out) {
  encode_bf16_bytes(row, kKvDim, out);
}
void decode_bf16_row(const std::byte* in, float* row) {
  decode_bf16_bytes(in, kKvDim, row);
}

void encode_index(const float* row, std::uint8_t* codes, float* scale) {
  const FloatTag d;
  const float amax = amax_of(row, kIndexDim, 1e-4f);
  *scale = amax / 448.0f;
  if (poisoned(amax)) {
    std::fill_n(codes, kIndexDim, kE4m3Nan);
    return;
  }
  for (std::size_t i = 0; i < kIndexDim; i += kLanes) {
    auto y = hn::Div(hn::LoadU(d, row + i), hn::Set(d, *scale));
    y = hn::Min(hn::Max(y, hn::Set(d, -448.0f)), hn::Set(d, 448.0f));
    store_codes(round_e4m3_part(y), codes + i);
  }
}

void decode_index(const std::uint8_t* codes, float* row) {
  const V16 scale = set16(256.0f);
  for (std::size_t i = 0; i < kIndexDim; i += 16) {
    store16(decode_e4m3_16(codes + i, scale), row + i);
  }
}

void fake_quantise_fp4(const float* row, float* out) {
  const FloatTag d;
  const UintTag du;
  constexpr std::size_t kGroup = 32;
  for (std::size_t begin = 0; begin < kIndexDim; begin += kGroup) {
    const float amax = amax_of(row + begin, kGroup, 6 * 0x1p-126f);
    if (poisoned(amax)) {
      std::fill_n(out + begin, kGroup, kNan);
      continue;
    }
    const auto scale = hn::Set(d, power_of_field(scale_field(amax, kInverse6)));
    for (std::size_t i = begin; i < begin + kGroup; i += kLanes) {
      // A division: the reciprocal of an extreme scale would not be a normal number.
      auto y = hn::Div(hn::LoadU(d, row + i), scale);
      y = hn::Min(hn::Max(y, hn::Set(d, -6.0f)), hn::Set(d, 6.0f));
      // From 1 up one mantissa bit is kept; below, the step is 0.5.
      const auto bits = hn::BitCast(du, y);
      const auto odd = hn::And(hn::ShiftRight<22>(bits), hn::Set(du, 1u));
      const auto kept =
          hn::And(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x1fffffu))), hn::Set(du, 0xffc00000u));
      const auto magic = hn::Set(d, 0x1.8p22f);
      const auto fixed = hn::CopySign(hn::Sub(hn::Add(y, magic), magic), y);
      const auto grid =
          hn::IfThenElse(hn::Lt(hn::Abs(y), hn::Set(d, 1.0f)), fixed, hn::BitCast(d, kept));
      hn::StoreU(hn::Mul(grid, scale), d, out + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(encode_fp8);
HWY_EXPORT(decode_fp8);
HWY_EXPORT(fake_quantise);
HWY_EXPORT(encode_bf16_row);
HWY_EXPORT(decode_bf16_row);
HWY_EXPORT(encode_index);
HWY_EXPORT(decode_index);
HWY_EXPORT(fake_quantise_fp4);

void encode_kv_fp8(const float* row, std::uint8_t* nope, std::uint8_t* scales, std::byte* rope) {
  HWY_DYNAMIC_DISPATCH(encode_fp8)(row, nope, scales, rope);
}
void decode_kv_fp8(const std::uint8_t* nope, const std::uint8_t* scales, const std::byte* rope,
                   float* row) {
  HWY_DYNAMIC_DISPATCH(decode_fp8)(nope, scales, rope, row);
}
void fake_quantise_kv(const float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(fake_quantise)(row, out);
}
void encode_kv_bf16(const float* row, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(encode_bf16_row)(row, out);
}
void decode_kv_bf16(const std::byte* in, float* row) {
  HWY_DYNAMIC_DISPATCH(decode_bf16_row)(in, row);
}
void encode_index_fp8(const float* row, std::uint8_t* codes, float* scale) {
  HWY_DYNAMIC_DISPATCH(encode_index)(row, codes, scale);
}
void decode_index_fp8(const std::uint8_t* codes, float* row) {
  HWY_DYNAMIC_DISPATCH(decode_index)(codes, row);
}
void fake_quantise_index_fp4(const float* row, float* out) {
  HWY_DYNAMIC_DISPATCH(fake_quantise_fp4)(row, out);
}

}  // namespace cupel
#endif  // HWY_ONCE
