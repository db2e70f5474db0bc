#include "cupel/kernels/cpu/bf16_dots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cupel/kernels/cpu/bf16_pairs.h"
#include "cupel/kernels/cpu/linear_tiles.h"

namespace cupel {
namespace {

using bf16_dots::add_dots;
using bf16_dots::dot_pairs;
using bf16_dots::Fp4Pairs;
using bf16_dots::Fp8Pairs;

constexpr std::size_t kPanel = PackedMatrix::kPanel;
constexpr std::size_t kTileRows = 12;
constexpr std::size_t kTilePanels = 2;

// Calls f.operator()<Format>() with what decodes this matrix's codes.
template <typename F>
auto with_format(const PackedMatrix& w, const F& f) {
  using enum InPlaceOrder;
  const bool fp4 = w.format() == PackedMatrix::Format::kFp4;
  if (w.is_in_place()) {
    return fp4 ? f.template operator()<Fp4Pairs<kWords>>()
               : f.template operator()<Fp8Pairs<kWords>>();
  }
  return fp4 ? f.template operator()<Fp4Pairs<kPacked>>()
             : f.template operator()<Fp8Pairs<kPacked>>();
}

}  // namespace
}  // namespace cupel

HWY_PUSH_ATTRIBUTES(CUPEL_BF16_DOTS_TARGET)
namespace cupel {
namespace {

// A few rows: totals[panel][row] += each block's sum over [0, count) in turn.
template <typename Format, std::size_t Panels, std::size_t Rows>
HWY_INLINE void few_rows(const PanelCodes* panels, const std::uint32_t* pairs,
                         std::size_t pair_stride, std::size_t count, const ReadAhead& ahead,
                         float* totals) {
  constexpr std::size_t kStep = Format::kStep;
  const Format decode;
  for (std::size_t begin = 0; begin < count; begin += Format::kBlock) {
    const std::size_t end = std::min(count, begin + Format::kBlock);
    __m512 sum[Panels][Rows];
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < Panels; ++p) {
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < Rows; ++r) sum[p][r] = _mm512_setzero_ps();
    }
    for (std::size_t k = begin; k < end; k += kStep) {
      const std::size_t at = k / kStep * 64;
      ahead.ask<Panels>(panels, at);
      HWY_UNROLL(4)
      for (std::size_t p = 0; p < Panels; ++p) {
        __m512i w[kStep / 2];
        decode(panels[p].codes + at, w);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < Rows; ++r) {
          HWY_UNROLL(4)
          for (std::size_t i = 0; i < kStep / 2; ++i) {
            sum[p][r] = add_dots(sum[p][r], w[i], pairs[r * pair_stride + k / 2 + i]);
          }
        }
      }
    }
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < Panels; ++p) {
      const __m512 scale = Format::scale(panels[p], begin / Format::kBlock);
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < Rows; ++r) {
        float* total = totals + (p * Rows + r) * kPanel;
        _mm512_store_ps(total, _mm512_fmadd_ps(sum[p][r], scale, _mm512_load_ps(total)));
      }
    }
  }
}

template <typename Format, std::size_t Panels, std::size_t Rows>
void few_rows_panels(const LinearUnit& u, std::size_t panel) {
  const PackedMatrix& w = *u.product->weight;
  alignas(64) float totals[Panels * Rows * kPanel] = {};
  const std::size_t depth = w.is_in_place() ? in_place_depth(w.format()) : w.k();
  const ReadAhead ahead(PackedMatrix::row_bytes(w.format(), depth) * kPanel, Panels);
  for (std::size_t k0 = 0; k0 < w.k(); k0 += depth) {
    const std::size_t count = std::min(depth, w.k() - k0);
    PanelCodes codes[Panels];
    for (std::size_t i = 0; i < Panels; ++i) {
      codes[i] = panel_at(w, panel + i, k0, count, i, Format::kInPlace);
    }
    few_rows<Format, Panels, Rows>(codes, u.pairs + k0 / 2, w.k() / 2, count, ahead, totals);
  }
  for (std::size_t i = 0; i < Panels; ++i) {
    linear_store_panel(*u.product, panel + i, 0, Rows, totals + i * Rows * kPanel);
  }
}

template <typename Format, std::size_t Rows>
void few_rows_unit(const LinearUnit& u) {
  std::size_t panel = u.panel_begin;
  for (; panel + kPanelSlots <= u.panel_end; panel += kPanelSlots) {
    few_rows_panels<Format, kPanelSlots, Rows>(u, panel);
  }
  for (; panel < u.panel_end; ++panel) few_rows_panels<Format, 1, Rows>(u, panel);
}

template <typename Format>
void few_rows_format(const LinearUnit& u) {
  static_assert(kFewRows == 4);
  switch (u.product->rows) {
    case 1:
      return few_rows_unit<Format, 1>(u);
    case 2:
      return few_rows_unit<Format, 2>(u);
    case 3:
      return few_rows_unit<Format, 3>(u);
    default:
      return few_rows_unit<Format, 4>(u);
  }
}

template <typename Format>
DecodedPanel decode_pairs(const PanelCodes& panel, std::size_t count, float* to) {
  const Format decode;
  float* scales = to + kTileDepth * kPanel;
  for (std::size_t begin = 0; begin < count; begin += Format::kBlock) {
    _mm512_store_ps(scales + begin / Format::kBlock * kPanel,
                    Format::scale(panel, begin / Format::kBlock));
  }
  for (std::size_t k = 0; k < count; k += Format::kStep) {
    __m512i w[Format::kStep / 2];
    decode(panel.codes + k / Format::kStep * 64, w);
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < Format::kStep / 2; ++i) {
      _mm512_store_si512(to + (k / 2 + i) * kPanel, w[i]);
    }
  }
  return {to, scales};
}

DecodedPanel decode(const PackedMatrix& w, const PanelCodes& panel, std::size_t count, float* to) {
  return with_format(w, [&]<typename Format>() { return decode_pairs<Format>(panel, count, to); });
}

template <std::size_t Panels, std::size_t Rows>
HWY_INLINE void tile(const DecodedPanel* panels, const std::uint32_t* x, std::size_t count,
                     std::size_t block, float* acc) {
  const float* w[Panels];
  for (std::size_t p = 0; p < Panels; ++p) w[p] = static_cast<const float*>(panels[p].values);
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t end = std::min(count, begin + block);
    __m512 sum[Rows][Panels];
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t p = 0; p < Panels; ++p) sum[r][p] = _mm512_setzero_ps();
    }
    const std::uint32_t* xk = x + begin / 2 * Rows;
    for (std::size_t i = begin / 2; i < end / 2; ++i, xk += Rows) {
      __m512i pair[Panels];
      for (std::size_t p = 0; p < Panels; ++p) pair[p] = _mm512_load_si512(w[p] + i * kPanel);
      HWY_UNROLL(12)
      for (std::size_t r = 0; r < Rows; ++r) {
        for (std::size_t p = 0; p < Panels; ++p) sum[r][p] = add_dots(sum[r][p], pair[p], xk[r]);
      }
    }
    __m512 scale[Panels];
    for (std::size_t p = 0; p < Panels; ++p) {
      scale[p] = _mm512_load_ps(panels[p].scales + begin / block * kPanel);
    }
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t p = 0; p < Panels; ++p) {
        float* total = acc + (p * Rows + r) * kPanel;
        _mm512_store_ps(total, _mm512_fmadd_ps(sum[r][p], scale[p], _mm512_load_ps(total)));
      }
    }
  }
}

template <std::size_t Panels, std::size_t Rows>
void tile_of(std::size_t rows, const DecodedPanel* panels, const std::uint32_t* x,
             std::size_t count, std::size_t block, float* acc) {
  if constexpr (Rows > 0) {
    if (rows == Rows) {
      tile<Panels, Rows>(panels, x, count, block, acc);
    } else {
      tile_of<Panels, Rows - 1>(rows, panels, x, count, block, acc);
    }
  }
}

void multiply(std::size_t width, std::size_t rows, const DecodedPanel* panels, const void* x,
              std::size_t count, std::size_t block, float* acc) {
  const auto* pairs = static_cast<const std::uint32_t*>(x);
  if (width == kTilePanels) {
    tile_of<kTilePanels, kTileRows>(rows, panels, pairs, count, block, acc);
  } else {
    tile_of<1, kTileRows>(rows, panels, pairs, count, block, acc);
  }
}

// Sixteen sums of two products onto a third number, in magnitudes that make the order show.
void sums_of_two(const float* start, const std::uint32_t* a, const std::uint32_t* b, float* out) {
  _mm512_storeu_ps(out,
                   dot_pairs(_mm512_loadu_ps(start), _mm512_loadu_si512(a), _mm512_loadu_si512(b)));
}

// The upper halves of 32 consecutive fp32 as sixteen pairs; what was cut off is added to `rest`,
// and lanes outside the range to `outside`.
HWY_INLINE __m512i pairs_of(const float* x, __m512i& rest, __mmask16& outside) {
  alignas(64) static constexpr std::array<std::uint16_t, 32> kUpper = [] {
    std::array<std::uint16_t, 32> at{};
    for (std::size_t i = 0; i < 16; ++i) {
      at[2 * i] = static_cast<std::uint16_t>(4 * i + 3);      // x[2 i + 1]
      at[2 * i + 1] = static_cast<std::uint16_t>(4 * i + 1);  // x[2 i]
    }
    return at;
  }();
  __m512i bits[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const __m512 v = _mm512_loadu_ps(x + 16 * i);
    bits[i] = _mm512_castps_si512(v);
    rest = _mm512_or_si512(rest, _mm512_slli_epi32(bits[i], 16));
    const __m512 magnitude = _mm512_abs_ps(v);
    const __mmask16 inside = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p-60f), _CMP_GE_OQ) &
                             _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1p40f), _CMP_LE_OQ);
    const __mmask16 zero = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_EQ_OQ);
    outside = static_cast<__mmask16>(outside | ~(inside | zero));
  }
  return _mm512_permutex2var_epi16(bits[0], _mm512_load_si512(kUpper.data()), bits[1]);
}

constexpr std::size_t kPackAtOnce = 32;

// One row. Other processors have read these words for the product before and hold their lines, so
// all lines are asked for at once, and written whole: one after the other they take longer than a
// small product.
bool pack_row(const float* x, std::size_t k, std::uint32_t* pairs) {
  constexpr std::size_t kLineWords = 16;
  for (std::size_t i = 0; i < k / 2; i += kLineWords) __builtin_prefetch(pairs + i, 1, 3);
  __m512i rest = _mm512_setzero_si512();
  __mmask16 outside = 0;
  std::size_t i = 0;
  for (; i + kPackAtOnce <= k; i += kPackAtOnce) {
    _mm512_storeu_si512(pairs + i / 2, pairs_of(x + i, rest, outside));
  }
  if (i < k) {
    alignas(64) float tail[kPackAtOnce] = {};
    std::copy_n(x + i, k - i, tail);
    const auto present = static_cast<__mmask16>((1u << (k - i) / 2) - 1);
    _mm512_mask_storeu_epi32(pairs + i / 2, present, pairs_of(tail, rest, outside));
  }
  return outside == 0 && _mm512_test_epi32_mask(rest, rest) == 0;
}

bool pack_rows_interleaved(const float* x, std::size_t x_stride, std::size_t rows, std::size_t k,
                           std::uint32_t* pairs) {
  __m512i rest = _mm512_setzero_si512();
  __mmask16 outside = 0;
  for (std::size_t begin = 0; begin < k; begin += kPackAtOnce) {
    const std::size_t count = std::min(kPackAtOnce, k - begin);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* from = x + r * x_stride + begin;
      alignas(64) float tail[kPackAtOnce] = {};
      if (count < kPackAtOnce) {
        std::copy_n(from, count, tail);
        from = tail;
      }
      alignas(64) std::uint32_t words[kPackAtOnce / 2];
      _mm512_store_si512(words, pairs_of(from, rest, outside));
      std::uint32_t* to = pairs + begin / 2 * rows + r;
      for (std::size_t i = 0; i < count / 2; ++i) to[i * rows] = words[i];
    }
  }
  return outside == 0 && _mm512_test_epi32_mask(rest, rest) == 0;
}

}  // namespace
}  // namespace cupel
HWY_POP_ATTRIBUTES

namespace cupel {
namespace {

bool adds_upper_half_first() {
  std::uint64_t state = 1;
  const auto next = [&](std::uint32_t exponents) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<std::uint32_t>(state >> 32);
    return (random & 0x807f0000u) | (127 - exponents / 2 + (random & 0xffffu) % exponents) << 23;
  };
  const auto number = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  for (int trial = 0; trial < 64; ++trial) {
    float start[16], out[16];
    std::uint32_t a[16], b[16];
    for (std::size_t i = 0; i < 16; ++i) {
      start[i] = number(next(32) | (next(2) >> 16));
      a[i] = next(16) | next(16) >> 16;
      b[i] = next(16) | next(16) >> 16;
    }
    sums_of_two(start, a, b, out);
    for (std::size_t i = 0; i < 16; ++i) {
      const float first =
          std::fma(number(a[i] & 0xffff0000u), number(b[i] & 0xffff0000u), start[i]);
      const float sum = std::fma(number(a[i] << 16), number(b[i] << 16), first);
      if (std::bit_cast<std::uint32_t>(sum) != std::bit_cast<std::uint32_t>(out[i])) return false;
    }
  }
  return true;
}

}  // namespace

bool has_bf16_dots() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vbmi") &&
                          __builtin_cpu_supports("avx512bf16") && adds_upper_half_first();
  return has;
}

bool bf16_pairs(const float* x, std::size_t x_stride, std::size_t rows, std::size_t k,
                std::uint32_t* pairs) {
  return rows == 1 ? pack_row(x, k, pairs) : pack_rows_interleaved(x, x_stride, rows, k, pairs);
}

void run_bf16_unit(const LinearUnit& u) {
  constexpr TileKernel kKernel = {.panels = kTilePanels,
                                  .value_bytes = sizeof(std::uint16_t),
                                  .in_place = InPlaceOrder::kWords,
                                  .decode = decode,
                                  .multiply = multiply};
  if (u.packed_x != nullptr) return run_tiles(u, kKernel);
  with_format(*u.product->weight, [&]<typename Format>() { few_rows_format<Format>(u); });
}

}  // namespace cupel
