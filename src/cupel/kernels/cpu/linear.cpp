#include "cupel/kernels/linear.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/aligned_buffer.h"
#include "cupel/kernels/cpu/fp4_integers-inl.h"
#include "cupel/kernels/cpu/linear_units.h"
#include "cupel/kernels/cpu/pack_rows.h"
#include "cupel/kernels/cpu/panel_decode-inl.h"
#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kPanel = PackedMatrix::kPanel;

// Rows and panels of a register tile: as many chains as the registers hold.
constexpr std::size_t kTileRows = kParts == 1 ? 12 : 6;
constexpr std::size_t kTilePanels = kParts == 1 ? 2 : 1;
// Panels side by side for a few rows: at least four chains, to hide the latency of the
// multiply-add.
constexpr std::size_t few_row_panels(std::size_t rows) {
  constexpr std::size_t kWide[] = {0, 4, 4, 2, 2};
  constexpr std::size_t kNarrow[] = {0, 4, 2, 2, 1};
  return kParts == 1 ? kWide[rows] : kNarrow[rows];
}

// Input indices decoded at a time for many rows: 8 KiB of fp32 a panel, whole sum blocks.
constexpr std::size_t kTileDepth = 128;
// Input indices of a matrix in place that are packed at a time for a few rows.
constexpr std::size_t kInPlaceDepth = 512;
static_assert(kTileDepth % PackedMatrix::kFp8Block == 0);
static_assert(kInPlaceDepth % PackedMatrix::kFp8Block == 0);

// How far ahead the codes of a few-row product are asked for.
constexpr std::size_t kPrefetchBytes = 1024;
constexpr std::size_t kLine = 64;

struct Scratch {
  AlignedBuffer packed{few_row_panels(1) * kInPlaceDepth * kPanel * sizeof(float)};
  AlignedBuffer scales{few_row_panels(1) * kInPlaceDepth / PackedMatrix::kFp4Group * kPanel};
  AlignedBuffer decoded{kTilePanels * kTileDepth * kPanel * sizeof(float)};
  AlignedBuffer totals;
};

Scratch& scratch() {
  static thread_local Scratch s;
  return s;
}

// A panel's codes and scales from k0 on; of a matrix in place, `count` input indices packed into
// the `slot`-th part of the scratch. k0 is a multiple of 128.
PanelCodes panel_at(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                    std::size_t slot) {
  using Format = PackedMatrix::Format;
  const Format format = w.format();
  PanelCodes p;
  if (format == Format::kFp8) p.fp8_scales = w.fp8_scales(panel, k0);
  if (!w.is_in_place()) {
    p.codes = w.panel_codes(panel, k0);
    if (format == Format::kFp4) p.fp4_scales = w.fp4_scales(panel, k0);
    return p;
  }
  const std::size_t rows = std::min(kPanel, w.n() - panel * kPanel);
  std::uint8_t* to = scratch().packed.data() + slot * kInPlaceDepth * kPanel * sizeof(float);
  pack_rows(w.row_codes(panel * kPanel) + PackedMatrix::row_bytes(format, k0), w.row_bytes(), rows,
            PackedMatrix::row_bytes(format, count), PackedMatrix::unit_bytes(format), to);
  p.codes = to;
  if (format == Format::kFp4) {
    constexpr std::size_t kGroup = PackedMatrix::kFp4Group;
    std::uint8_t* scales = scratch().scales.data() + slot * kInPlaceDepth / kGroup * kPanel;
    pack_rows(w.row_fp4_scales(panel * kPanel) + k0 / kGroup, w.k() / kGroup, rows, count / kGroup,
              1, scales);
    p.fp4_scales = scales;
  }
  return p;
}

// A few rows: codes go from memory through registers into the chains. For Panels panels and Rows
// rows: totals[panel][row] += each block's sum over [0, count) in turn. kScaleSum: scale the sums,
// not the weights (PackedMatrix::Scales::kModerate and inputs within its range).
template <typename Format, std::size_t Panels, std::size_t Rows, bool kScaleSum>
HWY_INLINE void few_rows(const PanelCodes* panels, const float* x, std::size_t x_stride,
                         std::size_t count, float* totals) {
  constexpr std::size_t kStep = Format::kStep;
  constexpr std::size_t kLineDepth = kLine / Format::kStepBytes * kStep;
  constexpr bool kScaleWeights = Format::kScaled && !kScaleSum;
  for (std::size_t begin = 0; begin < count; begin += Format::kBlock) {
    const std::size_t end = std::min(count, begin + Format::kBlock);
    V16 scale[Panels];
    V16 sum[Panels][Rows];
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < Panels; ++p) {
      if constexpr (Format::kScaled) scale[p] = Format::scale(panels[p], begin / Format::kBlock);
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < Rows; ++r) sum[p][r] = zero16();
    }
    const auto step = [&](std::size_t k) HWY_ATTR {
      typename Format::Codes codes[Panels];
      HWY_UNROLL(4)
      for (std::size_t p = 0; p < Panels; ++p) {
        codes[p] = Format::load(panels[p].codes + k / kStep * Format::kStepBytes);
      }
      HWY_UNROLL(8)
      for (std::size_t s = 0; s < kStep; ++s) {
        V16 w[Panels];
        HWY_UNROLL(4)
        for (std::size_t p = 0; p < Panels; ++p) {
          w[p] = Format::at(codes[p], s);
          if constexpr (kScaleWeights) w[p] = mul16(w[p], scale[p]);
        }
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < Rows; ++r) {
          const V16 value = set16(x[r * x_stride + k + s]);
          HWY_UNROLL(4)
          for (std::size_t p = 0; p < Panels; ++p) sum[p][r] = fma16(value, w[p], sum[p][r]);
        }
      }
    };
    std::size_t k = begin;
    for (; k + kLineDepth <= end; k += kLineDepth) {
      HWY_UNROLL(4)
      for (std::size_t p = 0; p < Panels; ++p) {
        __builtin_prefetch(panels[p].codes + k / kStep * Format::kStepBytes + kPrefetchBytes);
      }
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kLineDepth; i += kStep) step(k + i);
    }
    for (; k < end; k += kStep) step(k);
    for (std::size_t p = 0; p < Panels; ++p) {
      for (std::size_t r = 0; r < Rows; ++r) {
        float* total = totals + (p * Rows + r) * kPanel;
        if constexpr (Format::kScaled && kScaleSum) {
          store16(fma16(sum[p][r], scale[p], load16(total)), total);
        } else {
          store16(add16(load16(total), sum[p][r]), total);
        }
      }
    }
  }
}

// Writes what a panel adds up to: `rows` times sixteen fp32, `stride` apart, for rows from row0 on.
void store_panel(const Product& p, std::size_t panel, std::size_t row0, std::size_t rows,
                 float* totals, std::size_t stride) {
  const std::size_t columns = std::min(kPanel, p.weight->n() - panel * kPanel);
  for (std::size_t r = 0; r < rows; ++r) {
    float* from = totals + r * stride;
    float* to = p.out + (row0 + r) * p.out_stride + panel * kPanel;
    if (p.round_bf16) store16(round_bf16_16(load16(from)), from);
    if (columns == kPanel) {
      store16(load16(from), to);
    } else {
      std::copy_n(from, columns, to);
    }
  }
}

// The same for FP4, by integers where a block of every row allows it.
template <std::size_t Panels, std::size_t Rows>
void few_rows_integers(const LinearUnit& u, const PanelCodes* panels, float* totals) {
  constexpr std::size_t kGroup = PackedMatrix::kFp4Group;
  const Product& p = *u.product;
  const std::size_t k = p.weight->k(), blocks = k / kGroup;
  for (std::size_t block = 0; block < blocks; ++block) {
    bool exact = true;
    for (std::size_t r = 0; r < Rows; ++r) exact &= u.units[r * blocks + block] != 0;
    if (exact) {
      integer_block<Panels, Rows>(panels, block, u.pairs + block * kGroup / 2, k / 2,
                                  u.units + block, blocks, totals);
      continue;
    }
    PanelCodes from[Panels];
    for (std::size_t i = 0; i < Panels; ++i) {
      from[i] = {.codes = panels[i].codes + block * kGroup / 2 * kPanel,
                 .fp4_scales = panels[i].fp4_scales + block * kPanel};
    }
    few_rows<Fp4, Panels, Rows, true>(from, p.x + block * kGroup, p.x_stride, kGroup, totals);
  }
}

template <typename Format, std::size_t Panels, std::size_t Rows, bool kScaleSum>
void few_rows_panels(const LinearUnit& u, std::size_t panel) {
  const Product& p = *u.product;
  const PackedMatrix& w = *p.weight;
  HWY_ALIGN float totals[Panels * Rows * kPanel] = {};
  const std::size_t depth = w.is_in_place() ? kInPlaceDepth : w.k();
  for (std::size_t k0 = 0; k0 < w.k(); k0 += depth) {
    const std::size_t count = std::min(depth, w.k() - k0);
    PanelCodes codes[Panels];
    for (std::size_t i = 0; i < Panels; ++i) codes[i] = panel_at(w, panel + i, k0, count, i);
    if constexpr (std::is_same_v<Format, Fp4> && kScaleSum) {
      few_rows_integers<Panels, Rows>(u, codes, totals);
    } else {
      few_rows<Format, Panels, Rows, kScaleSum>(codes, p.x + k0, p.x_stride, count, totals);
    }
  }
  for (std::size_t i = 0; i < Panels; ++i) {
    store_panel(p, panel + i, 0, Rows, totals + i * Rows * kPanel, kPanel);
  }
}

template <typename Format, std::size_t Rows, bool kScaleSum>
void few_rows_unit(const LinearUnit& u) {
  constexpr std::size_t kPanels = few_row_panels(Rows);
  std::size_t panel = u.panel_begin;
  for (; panel + kPanels <= u.panel_end; panel += kPanels) {
    few_rows_panels<Format, kPanels, Rows, kScaleSum>(u, panel);
  }
  for (; panel < u.panel_end; ++panel) {
    few_rows_panels<Format, 1, Rows, kScaleSum>(u, panel);
  }
}

template <typename Format>
void few_rows_format(const LinearUnit& u) {
  static_assert(kFewRows == 4);
  const auto run = [&](auto scale_sum) HWY_ATTR {
    switch (u.product->rows) {
      case 1:
        return few_rows_unit<Format, 1, scale_sum()>(u);
      case 2:
        return few_rows_unit<Format, 2, scale_sum()>(u);
      case 3:
        return few_rows_unit<Format, 3, scale_sum()>(u);
      default:
        return few_rows_unit<Format, 4, scale_sum()>(u);
    }
  };
  if constexpr (Format::kScaled) {
    if (u.scale_sums) return run(std::true_type());
  }
  run(std::false_type());
}

// Many rows: Panels panels decoded to fp32 meet Rows rows, packed [count][Rows]. acc[panel][row] +=
// each block's sum over [0, count) in turn.
template <std::size_t Panels, std::size_t Rows>
HWY_INLINE void tile(const float* const* b, const float* x, std::size_t count, std::size_t block,
                     float* acc) {
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t end = std::min(count, begin + block);
    V16 sum[Rows][Panels];
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t p = 0; p < Panels; ++p) sum[r][p] = zero16();
    }
    const float* xk = x + begin * Rows;
    for (std::size_t k = begin; k < end; ++k, xk += Rows) {
      V16 w[Panels];
      for (std::size_t p = 0; p < Panels; ++p) w[p] = load16(b[p] + k * kPanel);
      HWY_UNROLL(12)
      for (std::size_t r = 0; r < Rows; ++r) {
        const V16 value = set16(xk[r]);
        for (std::size_t p = 0; p < Panels; ++p) sum[r][p] = fma16(value, w[p], sum[r][p]);
      }
    }
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < Rows; ++r) {
      for (std::size_t p = 0; p < Panels; ++p) {
        float* total = acc + (p * Rows + r) * kPanel;
        store16(add16(load16(total), sum[r][p]), total);
      }
    }
  }
}

template <std::size_t Panels, std::size_t Rows>
void tile_of(std::size_t rows, const float* const* b, const float* x, std::size_t count,
             std::size_t block, float* acc) {
  if constexpr (Rows > 0) {
    if (rows == Rows) {
      tile<Panels, Rows>(b, x, count, block, acc);
    } else {
      tile_of<Panels, Rows - 1>(rows, b, x, count, block, acc);
    }
  }
}

void decode(const PackedMatrix& w, const PanelCodes& panel, std::size_t count, float* out) {
  switch (w.format()) {
    case PackedMatrix::Format::kFp4:
      return decode_panel<Fp4>(panel, count, out);
    case PackedMatrix::Format::kFp8:
      if (w.scales() == PackedMatrix::Scales::kExtreme) {
        return decode_extreme_fp8(panel, count, out);
      }
      return decode_panel<Fp8>(panel, count, out);
    case PackedMatrix::Format::kBf16:
      return decode_panel<Bf16>(panel, count, out);
    case PackedMatrix::Format::kF32:
      break;
  }
}

// The unit's panels against its tiles of rows, a slice of input indices at a time: the slice of the
// rows stays in the second-level cache for all panels, the decoded panels in the first for all
// rows.
void tiles_unit(const LinearUnit& u) {
  const Product& p = *u.product;
  const PackedMatrix& w = *p.weight;
  const RowTiles tiles(p.rows, kTileRows);
  const std::size_t first_row = tiles.begin(u.tile_begin), last_row = tiles.begin(u.tile_end);
  const std::size_t rows = last_row - first_row;
  const std::size_t panels = u.panel_end - u.panel_begin;
  Scratch& s = scratch();
  if (s.totals.size() < panels * rows * kPanel * sizeof(float)) {
    s.totals = AlignedBuffer(panels * rows * kPanel * sizeof(float));
  }
  auto* totals = reinterpret_cast<float*>(s.totals.data());  // [panel pair][tile][panel][row][16]
  std::fill_n(totals, panels * rows * kPanel, 0.0f);
  auto* decoded = reinterpret_cast<float*>(s.decoded.data());
  for (std::size_t k0 = 0; k0 < w.k(); k0 += kTileDepth) {
    const std::size_t count = std::min(kTileDepth, w.k() - k0);
    float* acc = totals;
    for (std::size_t panel = u.panel_begin; panel < u.panel_end; panel += kTilePanels) {
      const std::size_t width = std::min(kTilePanels, u.panel_end - panel);
      const float* b[kTilePanels];
      for (std::size_t i = 0; i < width; ++i) {
        const PanelCodes codes = panel_at(w, panel + i, k0, count, i);
        float* to = decoded + i * kTileDepth * kPanel;
        decode(w, codes, count, to);
        b[i] = w.format() == PackedMatrix::Format::kF32
                   ? reinterpret_cast<const float*>(codes.codes)
                   : to;
      }
      for (std::size_t t = u.tile_begin; t < u.tile_end; ++t) {
        const std::size_t row = tiles.begin(t), tile_rows = tiles.begin(t + 1) - row;
        const float* x = u.packed_x + row * w.k() + k0 * tile_rows;
        if (width == kTilePanels) {
          tile_of<kTilePanels, kTileRows>(tile_rows, b, x, count, w.sum_block(), acc);
        } else {
          tile_of<1, kTileRows>(tile_rows, b, x, count, w.sum_block(), acc);
        }
        acc += width * tile_rows * kPanel;
      }
    }
  }
  float* acc = totals;
  for (std::size_t panel = u.panel_begin; panel < u.panel_end; panel += kTilePanels) {
    const std::size_t width = std::min(kTilePanels, u.panel_end - panel);
    for (std::size_t t = u.tile_begin; t < u.tile_end; ++t) {
      const std::size_t row = tiles.begin(t), tile_rows = tiles.begin(t + 1) - row;
      for (std::size_t i = 0; i < width; ++i, acc += tile_rows * kPanel) {
        store_panel(p, panel + i, row, tile_rows, acc, kPanel);
      }
    }
  }
}

void linear_unit(const LinearUnit& u) {
  if (u.packed_x != nullptr) return tiles_unit(u);
  switch (u.product->weight->format()) {
    case PackedMatrix::Format::kFp4:
      return few_rows_format<Fp4>(u);
    case PackedMatrix::Format::kFp8:
      return few_rows_format<Fp8>(u);
    case PackedMatrix::Format::kBf16:
      return few_rows_format<Bf16>(u);
    case PackedMatrix::Format::kF32:
      return few_rows_format<F32>(u);
  }
}

void fp4_integers(const float* x, std::size_t k, std::int32_t* pairs, float* units) {
  to_integers(x, k, pairs, units);
}

std::size_t tile_rows() {
  return kTileRows;
}

// True if every value is zero or in [2^-60, 2^40] (PackedMatrix::Scales::kModerate).
bool moderate_inputs(const float* x, std::size_t count) {
  const FloatTag d;
  const auto low = hn::Set(d, 0x1p-60f), high = hn::Set(d, 0x1p40f), zero = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto v = hn::Abs(hn::LoadU(d, x + i));
    const auto inside = hn::And(hn::Ge(v, low), hn::Le(v, high));
    if (!hn::AllTrue(d, hn::Or(inside, hn::Eq(v, zero)))) return false;
  }
  return std::all_of(x + i, x + count, [](float v) {
    const float a = v < 0 ? -v : v;
    return a == 0 || (a >= 0x1p-60f && a <= 0x1p40f);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(linear_unit);
HWY_EXPORT(tile_rows);
HWY_EXPORT(moderate_inputs);
HWY_EXPORT(fp4_integers);

void run_linear_unit(const LinearUnit& unit) {
  HWY_DYNAMIC_DISPATCH(linear_unit)(unit);
}
std::size_t linear_tile_rows() {
  return HWY_DYNAMIC_DISPATCH(tile_rows)();
}
bool linear_moderate_inputs(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(moderate_inputs)(x, count);
}
void linear_fp4_integers(const float* x, std::size_t k, std::int32_t* pairs, float* units) {
  HWY_DYNAMIC_DISPATCH(fp4_integers)(x, k, pairs, units);
}

}  // namespace cupel
#endif  // HWY_ONCE
