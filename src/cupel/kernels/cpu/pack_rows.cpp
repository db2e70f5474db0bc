#include "cupel/kernels/cpu/pack_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/pack_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kRows = 16;
constexpr std::size_t kLine = 64;

// Sixteen rows are more streams than the processor follows by itself.
HWY_INLINE void ask_for_lines(const std::byte* in, std::size_t stride) {
  for (std::size_t i = 0; i < kRows; ++i) __builtin_prefetch(in + i * stride, 0, 2);
}

// Sixteen bytes of each of sixteen rows. Interleaving rows i and i + 8 rotates the index (row,
// unit) by one bit; four times, and the row is the inner index, whatever the unit.
template <typename T>
HWY_INLINE void transpose(const std::byte* in, std::size_t stride, std::uint8_t* out) {
  const hn::FixedTag<T, 16 / sizeof(T)> d;
  const hn::FixedTag<std::uint8_t, 16> d8;
  hn::Vec<decltype(d)> v[kRows], w[kRows];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) {
    v[i] = hn::BitCast(d, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(in) + i * stride));
  }
  const auto round = [&](const auto* from, auto* to) HWY_ATTR {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows / 2; ++i) {
      to[2 * i] = hn::InterleaveLower(d, from[i], from[i + kRows / 2]);
      to[2 * i + 1] = hn::InterleaveUpper(d, from[i], from[i + kRows / 2]);
    }
  };
  round(v, w);
  round(w, v);
  round(v, w);
  round(w, v);
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) hn::StoreU(hn::BitCast(d8, v[i]), d8, out + 16 * i);
}

template <typename T>
void pack(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
          std::uint8_t* out, std::size_t ahead) {
  std::size_t i = 0;
  if (rows == kRows) {
    for (; i + 16 <= bytes; i += 16) {
      if (i % kLine == 0) ask_for_lines(in + i + ahead, stride);
      transpose<T>(in + i, stride, out + i * kRows);
    }
  }
  for (; i < bytes; i += sizeof(T)) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(out + i * kRows + row * sizeof(T), in + row * stride + i, sizeof(T));
    }
  }
}

void pack8(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
           std::uint8_t* out, std::size_t ahead) {
  pack<std::uint8_t>(in, stride, rows, bytes, out, ahead);
}
void pack16(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
            std::uint8_t* out, std::size_t ahead) {
  pack<std::uint16_t>(in, stride, rows, bytes, out, ahead);
}
#if HWY_TARGET <= HWY_AVX3
// Sixteen words of each of sixteen rows, a quarter of the shuffles a byte that transpose() takes.
HWY_INLINE void transpose_lines(const std::byte* in, std::size_t stride, std::uint8_t* out) {
  __m512i v[kRows], w[kRows];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) v[i] = _mm512_loadu_si512(in + i * stride);
  // Within each quarter the 4 x 4 words of rows 4 i to 4 i + 3 ...
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kRows; i += 4) {
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  // ... then the 4 x 4 quarters: v[4 i + j] has word 4 q + j of those rows in its quarter q.
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x88);       // quarters 0, 2 of rows 0-7
    const __m512i b = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xdd);       // 1, 3
    const __m512i c = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x88);  // of rows 8-15
    const __m512i d = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xdd);
    w[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    w[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    w[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    w[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) _mm512_storeu_si512(out + 64 * i, w[i]);
}
#endif

void pack32(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
            std::uint8_t* out, std::size_t ahead) {
  std::size_t i = 0;
#if HWY_TARGET <= HWY_AVX3
  if (rows == kRows) {
    for (; i + kLine <= bytes; i += kLine) {
      ask_for_lines(in + i + ahead, stride);
      transpose_lines(in + i, stride, out + i * kRows);
    }
  }
#endif
  pack<std::uint32_t>(in + i, stride, rows, bytes - i, out + i * kRows, ahead);
}

void pair_words(std::uint8_t* words, std::size_t bytes) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  // The low nibbles of four bytes, together in the low half.
  const auto together = [&](auto nibbles) HWY_ATTR {
    const auto two = hn::And(hn::Or(nibbles, hn::ShiftRight<4>(nibbles)), hn::Set(d, 0x00ff00ffu));
    return hn::And(hn::Or(two, hn::ShiftRight<8>(two)), hn::Set(d, 0x0000ffffu));
  };
  const auto low = hn::Set(d, 0x0f0f0f0fu);
  const auto paired = [&](auto v) HWY_ATTR {
    const auto even = together(hn::And(v, low));
    const auto odd = together(hn::And(hn::ShiftRight<4>(v), low));
    return hn::Or(hn::ShiftLeft<16>(even), odd);
  };
  const std::size_t step = hn::Lanes(d8);
  std::size_t i = 0;
  for (; i + step <= bytes; i += step) {
    const auto v = hn::BitCast(d, hn::LoadU(d8, words + i));
    hn::StoreU(hn::BitCast(d8, paired(v)), d8, words + i);
  }
  for (; i < bytes; i += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, words + i, sizeof word);
    word = hn::GetLane(paired(hn::Set(d, word)));
    std::memcpy(words + i, &word, sizeof word);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(pack8);
HWY_EXPORT(pack16);
HWY_EXPORT(pack32);
HWY_EXPORT(pair_words);

void pair_fp4_words(std::uint8_t* words, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(pair_words)(words, bytes);
}

void pack_rows(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
               std::size_t unit, std::uint8_t* out, std::size_t ahead) {
  if (unit == 1) {
    HWY_DYNAMIC_DISPATCH(pack8)(in, stride, rows, bytes, out, ahead);
  } else if (unit == 2) {
    HWY_DYNAMIC_DISPATCH(pack16)(in, stride, rows, bytes, out, ahead);
  } else {
    HWY_DYNAMIC_DISPATCH(pack32)(in, stride, rows, bytes, out, ahead);
  }
}

}  // namespace cupel
#endif  // HWY_ONCE
