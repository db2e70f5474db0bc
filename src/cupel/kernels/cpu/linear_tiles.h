// Products of many rows: how panels meet tiles of rows, whatever the arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupel/kernels/cpu/linear_units.h"
#include "cupel/kernels/cpu/panel_codes.h"

namespace cupel {

// Input indices decoded at a time: at most 8 KiB a panel, whole sum blocks.
inline constexpr std::size_t kTileDepth = 128;
static_assert(kTileDepth % PackedMatrix::kFp8Block == 0);
// Panels of a register tile at most.
inline constexpr std::size_t kMostTilePanels = 2;

// Some panels decoded, from the start of a slice of input indices on.
struct DecodedPanel {
  const void* values = nullptr;   // [count][16] fp32, or [count / 2][16] pairs of bf16
  const float* scales = nullptr;  // [blocks][16], where sums are scaled and not weights
};

struct TileKernel {
  std::size_t panels;       // of a register tile
  std::size_t value_bytes;  // of an input in the packed rows
  InPlaceOrder in_place;    // that `decode` reads
  // Decodes `count` input indices; `to` has room for kTileDepth * 16 fp32 and as many scales as
  // blocks. May leave `to` alone and return the codes themselves.
  DecodedPanel (*decode)(const PackedMatrix& w, const PanelCodes& codes, std::size_t count,
                         float* to);
  // acc[panel][row] += each block's sum over [0, count) in turn, for `width` panels and `rows`
  // rows; x is the rows' slice, [count][rows].
  void (*multiply)(std::size_t width, std::size_t rows, const DecodedPanel* panels, const void* x,
                   std::size_t count, std::size_t block, float* acc);
};

void run_tiles(const LinearUnit& unit, const TileKernel& kernel);

}  // namespace cupel
