#include "cupel/kernels/cpu/linear_tiles.h"

#include <algorithm>

#include "cupel/kernels/aligned_buffer.h"

namespace cupel {
namespace {

constexpr std::size_t kPanel = PackedMatrix::kPanel;
constexpr std::size_t kDecodedFloats =
    kTileDepth * kPanel + kTileDepth / PackedMatrix::kFp4Group * kPanel;

struct Scratch {
  AlignedBuffer decoded{kMostTilePanels * kDecodedFloats * sizeof(float)};
  AlignedBuffer totals;
};

}  // namespace

// A slice of input indices at a time: the slice of the rows stays in the second-level cache for all
// panels, the decoded panels in the first for all rows.
void run_tiles(const LinearUnit& u, const TileKernel& kernel) {
  static thread_local Scratch s;
  const Product& p = *u.product;
  const PackedMatrix& w = *p.weight;
  const RowTiles tiles(p.rows, linear_tile_rows());
  const std::size_t rows = tiles.begin(u.tile_end) - tiles.begin(u.tile_begin);
  const std::size_t panels = u.panel_end - u.panel_begin;
  const std::size_t bytes = panels * rows * kPanel * sizeof(float);
  if (s.totals.size() < bytes) s.totals = AlignedBuffer(bytes);
  auto* totals = reinterpret_cast<float*>(s.totals.data());  // [panel pair][tile][panel][row][16]
  std::fill_n(totals, panels * rows * kPanel, 0.0f);
  auto* decoded = reinterpret_cast<float*>(s.decoded.data());
  const auto* packed = static_cast<const std::byte*>(u.packed_x);
  for (std::size_t k0 = 0; k0 < w.k(); k0 += kTileDepth) {
    const std::size_t count = std::min(kTileDepth, w.k() - k0);
    float* acc = totals;
    for (std::size_t panel = u.panel_begin; panel < u.panel_end; panel += kernel.panels) {
      const std::size_t width = std::min(kernel.panels, u.panel_end - panel);
      DecodedPanel b[kMostTilePanels];
      for (std::size_t i = 0; i < width; ++i) {
        b[i] = kernel.decode(w, panel_at(w, panel + i, k0, count, i, kernel.in_place), count,
                             decoded + i * kDecodedFloats);
      }
      for (std::size_t t = u.tile_begin; t < u.tile_end; ++t) {
        const std::size_t row = tiles.begin(t), tile_rows = tiles.begin(t + 1) - row;
        const std::byte* x = packed + (row * w.k() + k0 * tile_rows) * kernel.value_bytes;
        kernel.multiply(width, tile_rows, b, x, count, w.sum_block(), acc);
        acc += width * tile_rows * kPanel;
      }
    }
  }
  float* acc = totals;
  for (std::size_t panel = u.panel_begin; panel < u.panel_end; panel += kernel.panels) {
    const std::size_t width = std::min(kernel.panels, u.panel_end - panel);
    for (std::size_t t = u.tile_begin; t < u.tile_end; ++t) {
      const std::size_t row = tiles.begin(t), tile_rows = tiles.begin(t + 1) - row;
      for (std::size_t i = 0; i < width; ++i, acc += tile_rows * kPanel) {
        linear_store_panel(p, panel + i, row, tile_rows, acc);
      }
    }
  }
}

}  // namespace cupel
