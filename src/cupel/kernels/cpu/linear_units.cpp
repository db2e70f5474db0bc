#include "cupel/kernels/cpu/linear_units.h"

#include <vector>

#include "cupel/kernels/aligned_buffer.h"

namespace cupel {
namespace {

constexpr std::size_t kFewRowsPanels = 4;  // of a unit
constexpr std::size_t kTilesPanels = 8;
constexpr std::size_t kTilesPerUnit = 16;
constexpr std::size_t kPackDepth = 64;

// What is decided for a whole product.
struct Plan {
  const LinearParams* product;
  bool scale_sums = false;
  bool tiles = false;
  std::size_t packed_at = 0;  // of its packed rows, in floats
};

bool scale_sums(const LinearParams& p) {
  if (p.weight->scales() != PackedMatrix::Scales::kModerate) return false;
  for (std::size_t r = 0; r < p.rows; ++r) {
    if (!linear_moderate_inputs(p.x + r * p.x_stride, p.weight->k())) return false;
  }
  return true;
}

// One tile's rows as [k][rows].
void pack_tile(const LinearParams& p, std::size_t row, std::size_t rows, float* out) {
  const std::size_t k = p.weight->k();
  for (std::size_t begin = 0; begin < k; begin += kPackDepth) {
    const std::size_t end = std::min(k, begin + kPackDepth);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* from = p.x + (row + r) * p.x_stride;
      for (std::size_t i = begin; i < end; ++i) out[i * rows + r] = from[i];
    }
  }
}

bool same_rows(const LinearParams& a, const LinearParams& b) {
  return a.x == b.x && a.x_stride == b.x_stride && a.rows == b.rows &&
         a.weight->k() == b.weight->k();
}

// Packed rows of the running loop; kept, so that steps do not allocate.
float* packed_rows(std::size_t floats) {
  static thread_local AlignedBuffer buffer;
  if (buffer.size() < floats * sizeof(float)) buffer = AlignedBuffer(floats * sizeof(float));
  return reinterpret_cast<float*>(buffer.data());
}

}  // namespace

void linear(ThreadPool& pool, std::span<const LinearParams> products) {
  const std::size_t tile_rows = linear_tile_rows();
  std::vector<Plan> plans;
  struct PackJob {
    const LinearParams* product;
    std::size_t tile, at;
  };
  std::vector<PackJob> packs;
  std::size_t floats = 0;
  for (const LinearParams& p : products) {
    if (p.rows == 0) continue;
    Plan plan{.product = &p};
    plan.tiles = p.rows > kFewRows || p.weight->scales() == PackedMatrix::Scales::kExtreme;
    if (!plan.tiles) {
      plan.scale_sums = scale_sums(p);
    } else if (!plans.empty() && plans.back().tiles && same_rows(*plans.back().product, p)) {
      plan.packed_at = plans.back().packed_at;
    } else {
      plan.packed_at = floats;
      floats += p.rows * p.weight->k();
      const RowTiles tiles(p.rows, tile_rows);
      for (std::size_t t = 0; t < tiles.count(); ++t) packs.push_back({&p, t, plan.packed_at});
    }
    plans.push_back(plan);
  }
  float* packed = packed_rows(floats);
  pool.parallel_for(packs.size(), [&](std::size_t i, int) {
    const LinearParams& p = *packs[i].product;
    const RowTiles tiles(p.rows, tile_rows);
    const std::size_t row = tiles.begin(packs[i].tile);
    pack_tile(p, row, tiles.begin(packs[i].tile + 1) - row,
              packed + packs[i].at + row * p.weight->k());
  });

  // The pool gives a thread a contiguous part of the units first: a thread's share of each
  // product's panels stands together, as it does at loading.
  const auto shares = static_cast<std::size_t>(pool.threads());
  std::vector<LinearUnit> units;
  for (std::size_t share = 0; share < shares; ++share) {
    for (const Plan& plan : plans) {
      const std::size_t step = plan.tiles ? kTilesPanels : kFewRowsPanels;
      const std::size_t panels = plan.product->weight->panels();
      const std::size_t groups = (panels + step - 1) / step;
      const std::size_t begin = groups * share / shares * step;
      const std::size_t end = std::min(panels, groups * (share + 1) / shares * step);
      const RowTiles tiles(plan.product->rows, tile_rows);
      const RowTiles tile_ranges(tiles.count(), kTilesPerUnit);
      for (std::size_t panel = begin; panel < end; panel += step) {
        LinearUnit unit{.product = plan.product,
                        .panel_begin = panel,
                        .panel_end = std::min(panel + step, end),
                        .scale_sums = plan.scale_sums};
        if (!plan.tiles) {
          units.push_back(unit);
          continue;
        }
        unit.packed_x = packed + plan.packed_at;
        for (std::size_t range = 0; range < tile_ranges.count(); ++range) {
          unit.tile_begin = tile_ranges.begin(range);
          unit.tile_end = tile_ranges.begin(range + 1);
          units.push_back(unit);
        }
      }
    }
  }
  pool.parallel_for(units.size(), [&](std::size_t i, int) { run_linear_unit(units[i]); });
}

}  // namespace cupel
