// FP4 and FP8 codes as pairs of bf16 numbers, and the instruction that multiplies them
// (bf16_dots.h). For use between HWY_PUSH_ATTRIBUTES(CUPEL_BF16_DOTS_TARGET) and
// HWY_POP_ATTRIBUTES.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <hwy/base.h>
// g++ 12 warns of the undefined registers that its own intrinsics stand on.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/kernels/cpu/panel_codes.h"

#define CUPEL_BF16_DOTS_TARGET "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512bf16,prfchw"

namespace cupel::bf16_dots {

// The halves of the bf16 numbers of the e4m3 codes, without sign.
struct Fp8Halves {
  std::array<std::uint8_t, 128> low, high;
};
constexpr Fp8Halves fp8_halves() {
  Fp8Halves t{};
  for (std::size_t code = 0; code < 128; ++code) {
    const std::uint16_t bits = bf16_from_float(e4m3_to_float(static_cast<std::uint8_t>(code)));
    t.low[code] = static_cast<std::uint8_t>(bits & 0xff);
    t.high[code] = static_cast<std::uint8_t>(bits >> 8);
  }
  return t;
}
alignas(64) inline constexpr Fp8Halves kFp8Halves = fp8_halves();

// Where the bytes of the pair (k, k + 1) of output i are, in [low halves | high halves] of four
// input indices of sixteen outputs.
constexpr std::array<std::uint8_t, 64> pair_bytes(InPlaceOrder order, std::size_t k) {
  std::array<std::uint8_t, 64> at{};
  const bool words = order == InPlaceOrder::kWords;
  for (std::size_t i = 0; i < PackedMatrix::kPanel; ++i) {
    const std::size_t first = words ? 4 * i + k : k * PackedMatrix::kPanel + i;
    const std::size_t second = first + (words ? 1 : PackedMatrix::kPanel);
    at[4 * i + 0] = static_cast<std::uint8_t>(second);
    at[4 * i + 1] = static_cast<std::uint8_t>(second + 64);
    at[4 * i + 2] = static_cast<std::uint8_t>(first);
    at[4 * i + 3] = static_cast<std::uint8_t>(first + 64);
  }
  return at;
}
template <InPlaceOrder order, std::size_t k>
alignas(64) inline constexpr std::array<std::uint8_t, 64> kPairBytes = pair_bytes(order, k);

// By the low five bits of 16: the fifth belongs to the next code and must not matter.
constexpr std::array<std::uint16_t, 32> fp4_values() {
  std::array<std::uint16_t, 32> t{};
  for (std::size_t i = 0; i < 32; ++i) {
    t[i] = bf16_from_float(e2m1_to_float(static_cast<std::uint8_t>(i % 16)));
  }
  return t;
}
alignas(64) inline constexpr std::array<std::uint16_t, 32> kFp4Values = fp4_values();

// For VPMULTISHIFTQB on words of eight codes in published order, index s at bits 4 s: the first
// bits of bytes that hold code 2 j + 1 at bit 0 of the lower half and code 2 j at that of the
// upper.
constexpr std::array<std::uint8_t, 64> fp4_pair_bits(std::size_t j) {
  std::array<std::uint8_t, 64> at{};
  for (std::size_t i = 0; i < 64; i += 4) {
    const std::size_t word = i % 8 * 8;
    at[i] = at[i + 1] = static_cast<std::uint8_t>(word + 4 * (2 * j + 1));
    at[i + 2] = at[i + 3] = static_cast<std::uint8_t>(word + 4 * (2 * j));
  }
  return at;
}
template <std::size_t j>
alignas(64) inline constexpr std::array<std::uint8_t, 64> kFp4PairBits = fp4_pair_bits(j);

}  // namespace cupel::bf16_dots

HWY_PUSH_ATTRIBUTES(CUPEL_BF16_DOTS_TARGET)
namespace cupel::bf16_dots {

// sum + pairs of a times pairs of b, the upper halves first.
HWY_INLINE __m512 dot_pairs(__m512 sum, __m512i a, __m512i b) {
#if defined(__clang__)
  // clang 16 crashes on splats and shuffles that it moves through the intrinsic's vectors of bf16.
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
#else
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#endif
}

HWY_INLINE __m512 add_dots(__m512 sum, __m512i weights, std::uint32_t inputs) {
  return dot_pairs(sum, weights, _mm512_set1_epi32(static_cast<int>(inputs)));
}

// Each format: kStep input indices in 64 bytes of codes, as kStep / 2 vectors of pairs.

template <InPlaceOrder order>
class Fp8Pairs {
 public:
  static constexpr InPlaceOrder kInPlace = order;
  static constexpr std::size_t kStep = 4, kBlock = PackedMatrix::kFp8Block;

  HWY_INLINE Fp8Pairs()
      : low0_(_mm512_load_si512(kFp8Halves.low.data())),
        low1_(_mm512_load_si512(kFp8Halves.low.data() + 64)),
        high0_(_mm512_load_si512(kFp8Halves.high.data())),
        high1_(_mm512_load_si512(kFp8Halves.high.data() + 64)),
        pair01_(_mm512_load_si512(kPairBytes<order, 0>.data())),
        pair23_(_mm512_load_si512(kPairBytes<order, 2>.data())) {}

  HWY_INLINE void operator()(const std::uint8_t* codes, __m512i (&out)[2]) const {
    const __m512i code = _mm512_loadu_si512(codes);
    const __m512i low = _mm512_permutex2var_epi8(low0_, code, low1_);
    const __m512i magnitude = _mm512_permutex2var_epi8(high0_, code, high1_);
    // magnitude | (code & 0x80)
    const __m512i high =
        _mm512_ternarylogic_epi32(magnitude, code, _mm512_set1_epi32(kSigns), 0xf8);
    out[0] = _mm512_permutex2var_epi8(low, pair01_, high);
    out[1] = _mm512_permutex2var_epi8(low, pair23_, high);
  }
  static HWY_INLINE __m512 scale(const PanelCodes& panel, std::size_t block) {
    return _mm512_set1_ps(panel.fp8_scales[block]);
  }

 private:
  static constexpr int kSigns = static_cast<int>(0x80808080u);
  __m512i low0_, low1_, high0_, high1_, pair01_, pair23_;
};

template <InPlaceOrder order>
class Fp4Pairs {
 public:
  static constexpr InPlaceOrder kInPlace = order;
  static constexpr std::size_t kStep = 8, kBlock = PackedMatrix::kFp4Group;

  HWY_INLINE Fp4Pairs() : values_(_mm512_load_si512(kFp4Values.data())) {}

  HWY_INLINE void operator()(const std::uint8_t* codes, __m512i (&out)[4]) const {
    const __m512i code = _mm512_loadu_si512(codes);
    if constexpr (order == InPlaceOrder::kWords) {
      out[0] = at_bits<0>(code);
      out[1] = at_bits<1>(code);
      out[2] = at_bits<2>(code);
      out[3] = at_bits<3>(code);
      return;
    }
    out[0] = _mm512_permutexvar_epi16(code, values_);
    out[1] = _mm512_permutexvar_epi16(_mm512_srli_epi16(code, 4), values_);
    out[2] = _mm512_permutexvar_epi16(_mm512_srli_epi16(code, 8), values_);
    out[3] = _mm512_permutexvar_epi16(_mm512_srli_epi16(code, 12), values_);
  }
  // A moderate scale's byte is the exponent field.
  static HWY_INLINE __m512 scale(const PanelCodes& panel, std::size_t block) {
    const __m128i bytes = _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(panel.fp4_scales + block * PackedMatrix::kPanel));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23));
  }

 private:
  template <std::size_t j>
  HWY_INLINE __m512i at_bits(__m512i code) const {
    const __m512i bits = _mm512_load_si512(kFp4PairBits<j>.data());
    return _mm512_permutexvar_epi16(_mm512_multishift_epi64_epi8(bits, code), values_);
  }

  __m512i values_;
};

}  // namespace cupel::bf16_dots
HWY_POP_ATTRIBUTES
