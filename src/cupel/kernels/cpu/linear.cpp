#include "cupel/kernels/linear.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/bf16_dots.h"
#include "cupel/kernels/cpu/fp4_integers-inl.h"
#include "cupel/kernels/cpu/linear_tiles.h"
#include "cupel/kernels/cpu/linear_units.h"
#include "cupel/kernels/cpu/panel_codes.h"
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

static_assert(few_row_panels(1) <= kPanelSlots && kTilePanels <= kMostTilePanels);
constexpr std::size_t kLine = 64;

// A few rows: codes go from memory through registers into the chains. For Panels panels and Rows
// rows: totals[panel][row] += each block's sum over [0, count) in turn. kScaleSum: scale the sums,
// not the weights (PackedMatrix::Scales::kModerate and inputs within its range).
template <typename Format, std::size_t Panels, std::size_t Rows, bool kScaleSum>
HWY_INLINE void few_rows(const PanelCodes* panels, const float* x, std::size_t x_stride,
                         std::size_t count, const ReadAhead& ahead, float* totals) {
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
      ahead.ask<Panels>(panels, k / kStep * Format::kStepBytes);
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

void store_panel(const Product& p, std::size_t panel, std::size_t row0, std::size_t rows,
                 float* totals) {
  const std::size_t columns = std::min(kPanel, p.weight->n() - panel * kPanel);
  for (std::size_t r = 0; r < rows; ++r) {
    float* from = totals + r * kPanel;
    float* to = p.out + (row0 + r) * p.out_stride + panel * kPanel;
    if (p.round_bf16) store16(round_bf16_16(load16(from)), from);
    if (columns == kPanel) {
      store16(load16(from), to);
    } else {
      std::copy_n(from, columns, to);
    }
  }
}

// The same for FP4 over [k0, k0 + count), by integers where a block of every row allows it.
template <std::size_t Panels, std::size_t Rows>
void few_rows_integers(const LinearUnit& u, const PanelCodes* panels, std::size_t k0,
                       std::size_t count, const ReadAhead& ahead, float* totals) {
  constexpr std::size_t kGroup = PackedMatrix::kFp4Group;
  const Product& p = *u.product;
  const std::size_t k = p.weight->k(), blocks = k / kGroup;
  const float* x = p.x + k0;
  const std::uint32_t* pairs = u.pairs + k0 / 2;
  const float* units = u.units + k0 / kGroup;
  for (std::size_t block = 0; block < count / kGroup; ++block) {
    bool exact = true;
    for (std::size_t r = 0; r < Rows; ++r) exact &= units[r * blocks + block] != 0;
    if (exact) {
      integer_block<Panels, Rows>(panels, block, pairs + block * kGroup / 2, k / 2, units + block,
                                  blocks, ahead, totals);
      continue;
    }
    PanelCodes from[Panels];
    for (std::size_t i = 0; i < Panels; ++i) {
      from[i] = {.codes = panels[i].codes + block * kGroup / 2 * kPanel,
                 .fp4_scales = panels[i].fp4_scales + block * kPanel};
    }
    few_rows<Fp4, Panels, Rows, true>(from, x + block * kGroup, p.x_stride, kGroup, ahead, totals);
  }
}

template <typename Format, std::size_t Panels, std::size_t Rows, bool kScaleSum>
void few_rows_panels(const LinearUnit& u, std::size_t panel) {
  const Product& p = *u.product;
  const PackedMatrix& w = *p.weight;
  HWY_ALIGN float totals[Panels * Rows * kPanel] = {};
  const std::size_t depth = w.is_in_place() ? in_place_depth(w.format()) : w.k();
  const ReadAhead ahead(PackedMatrix::row_bytes(w.format(), depth) * kPanel, Panels);
  for (std::size_t k0 = 0; k0 < w.k(); k0 += depth) {
    const std::size_t count = std::min(depth, w.k() - k0);
    PanelCodes codes[Panels];
    for (std::size_t i = 0; i < Panels; ++i) {
      codes[i] = panel_at(w, panel + i, k0, count, i, Format::kInPlace);
    }
    if constexpr (std::is_same_v<Format, Fp4> && kScaleSum) {
      few_rows_integers<Panels, Rows>(u, codes, k0, count, ahead, totals);
    } else {
      few_rows<Format, Panels, Rows, kScaleSum>(codes, p.x + k0, p.x_stride, count, ahead, totals);
    }
  }
  for (std::size_t i = 0; i < Panels; ++i) {
    store_panel(p, panel + i, 0, Rows, totals + i * Rows * kPanel);
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

DecodedPanel decode(const PackedMatrix& w, const PanelCodes& panel, std::size_t count, float* to) {
  switch (w.format()) {
    case PackedMatrix::Format::kFp4:
      decode_panel<Fp4>(panel, count, to);
      break;
    case PackedMatrix::Format::kFp8:
      if (w.scales() == PackedMatrix::Scales::kExtreme) {
        decode_extreme_fp8(panel, count, to);
      } else {
        decode_panel<Fp8>(panel, count, to);
      }
      break;
    case PackedMatrix::Format::kBf16:
      decode_panel<Bf16>(panel, count, to);
      break;
    case PackedMatrix::Format::kF32:
      return {panel.codes, nullptr};
  }
  return {to, nullptr};
}

void multiply(std::size_t width, std::size_t rows, const DecodedPanel* panels, const void* x,
              std::size_t count, std::size_t block, float* acc) {
  const float* b[kTilePanels];
  for (std::size_t i = 0; i < width; ++i) b[i] = static_cast<const float*>(panels[i].values);
  if (width == kTilePanels) {
    tile_of<kTilePanels, kTileRows>(rows, b, static_cast<const float*>(x), count, block, acc);
  } else {
    tile_of<1, kTileRows>(rows, b, static_cast<const float*>(x), count, block, acc);
  }
}

void linear_unit(const LinearUnit& u) {
  constexpr TileKernel kTiles = {.panels = kTilePanels,
                                 .value_bytes = sizeof(float),
                                 .in_place = InPlaceOrder::kPacked,
                                 .decode = decode,
                                 .multiply = multiply};
  if (u.packed_x != nullptr) return run_tiles(u, kTiles);
  switch (u.product->weight->format()) {
    case PackedMatrix::Format::kFp4:
      return few_rows_format<Fp4>(u);
    case PackedMatrix::Format::kFp8:
      return few_rows_format<Fp8>(u);
    case PackedMatrix::Format::kBf16:
      if (u.product->weight->is_in_place() && u.product->weight->k() % Bf16Words::kStep == 0) {
        return few_rows_format<Bf16Words>(u);
      }
      return few_rows_format<Bf16>(u);
    case PackedMatrix::Format::kF32:
      return few_rows_format<F32>(u);
  }
}

void fp4_integers(const float* x, std::size_t k, std::uint32_t* pairs, float* units) {
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
HWY_EXPORT(store_panel);
HWY_EXPORT(tile_rows);
HWY_EXPORT(moderate_inputs);
HWY_EXPORT(fp4_integers);

namespace {

// In place: scales that were taken to be moderate and are not. Scales the weights, a few rows at a
// time, which needs no packed rows.
void run_scaling_weights(const LinearUnit& unit) {
  const Product& whole = *unit.product;
  const RowTiles tiles(whole.rows, linear_tile_rows());
  const bool few = unit.packed_x == nullptr;
  const std::size_t end = few ? whole.rows : tiles.begin(unit.tile_end);
  for (std::size_t row = few ? 0 : tiles.begin(unit.tile_begin); row < end; row += kFewRows) {
    Product part = whole;
    part.x += row * whole.x_stride;
    part.out += row * whole.out_stride;
    part.rows = std::min(kFewRows, end - row);
    HWY_DYNAMIC_DISPATCH(linear_unit)
    ({.product = &part, .panel_begin = unit.panel_begin, .panel_end = unit.panel_end});
  }
}

}  // namespace

void run_linear_unit(const LinearUnit& unit) {
  if ((unit.dots || unit.scale_sums) &&
      !unit.product->weight->are_moderate(unit.panel_begin, unit.panel_end)) {
    return run_scaling_weights(unit);
  }
  if (unit.dots) return run_bf16_unit(unit);
  HWY_DYNAMIC_DISPATCH(linear_unit)(unit);
}
std::size_t linear_tile_rows() {
  return HWY_DYNAMIC_DISPATCH(tile_rows)();
}
void linear_store_panel(const Product& product, std::size_t panel, std::size_t row0,
                        std::size_t rows, float* totals) {
  HWY_DYNAMIC_DISPATCH(store_panel)(product, panel, row0, rows, totals);
}
bool linear_moderate_inputs(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(moderate_inputs)(x, count);
}
void linear_fp4_integers(const float* x, std::size_t k, std::uint32_t* pairs, float* units) {
  HWY_DYNAMIC_DISPATCH(fp4_integers)(x, k, pairs, units);
}

}  // namespace cupel
#endif  // HWY_ONCE
