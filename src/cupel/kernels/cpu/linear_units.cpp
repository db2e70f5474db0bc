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
  const Product* product;
  bool scale_sums = false;
  bool tiles = false;
  bool integers = false;
  std::size_t packed_at = 0;  // of its packed rows or integers, in words of 32 bits
};

Product product_of(const LinearParams& p) {
  const std::size_t begin = p.row_range == nullptr ? 0 : static_cast<std::size_t>(p.row_range[0]);
  const std::size_t end =
      p.row_range == nullptr ? p.rows : static_cast<std::size_t>(p.row_range[1]);
  return {.x = p.x + begin * p.x_stride,
          .x_stride = p.x_stride,
          .rows = end - begin,
          .weight = static_cast<const PackedMatrix*>(p.weight),
          .out = p.out + begin * p.out_stride,
          .out_stride = p.out_stride,
          .round_bf16 = p.round_bf16};
}

bool scale_sums(const Product& p) {
  if (p.weight->scales() != PackedMatrix::Scales::kModerate) return false;
  for (std::size_t r = 0; r < p.rows; ++r) {
    if (!linear_moderate_inputs(p.x + r * p.x_stride, p.weight->k())) return false;
  }
  return true;
}

// One tile's rows as [k][rows].
void pack_tile(const Product& p, std::size_t row, std::size_t rows, float* out) {
  const std::size_t k = p.weight->k();
  for (std::size_t begin = 0; begin < k; begin += kPackDepth) {
    const std::size_t end = std::min(k, begin + kPackDepth);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* from = p.x + (row + r) * p.x_stride;
      for (std::size_t i = begin; i < end; ++i) out[i * rows + r] = from[i];
    }
  }
}

// Rows as integers: the pairs of all rows, then their units.
struct Integers {
  std::int32_t* pairs;
  float* units;
  std::size_t pair_stride, unit_stride;
};
std::size_t integer_words(std::size_t k) {
  return k / 2 + k / PackedMatrix::kFp4Group;
}
Integers integers_at(float* words, std::size_t rows, std::size_t k) {
  return {.pairs = reinterpret_cast<std::int32_t*>(words),
          .units = words + rows * k / 2,
          .pair_stride = k / 2,
          .unit_stride = k / PackedMatrix::kFp4Group};
}

bool same_rows(const Product& a, const Product& b) {
  return a.x == b.x && a.x_stride == b.x_stride && a.rows == b.rows &&
         a.weight->k() == b.weight->k();
}

// Inputs of the running loop, repacked; kept, so that steps do not allocate.
float* packed_rows(std::size_t floats) {
  static thread_local AlignedBuffer buffer;
  if (buffer.size() < floats * sizeof(float)) buffer = AlignedBuffer(floats * sizeof(float));
  return reinterpret_cast<float*>(buffer.data());
}

}  // namespace

void linear(ThreadPool& pool, std::span<const LinearParams> params) {
  std::vector<Product> products;
  products.reserve(params.size());
  for (const LinearParams& p : params) products.push_back(product_of(p));
  const std::size_t tile_rows = linear_tile_rows();
  std::vector<Plan> plans;
  struct PackJob {
    const Product* product;
    std::size_t tile, at;  // a tile of rows; or all rows to integers
    bool integers;
  };
  std::vector<PackJob> packs;
  std::size_t floats = 0;
  for (const Product& p : products) {
    if (p.rows == 0) continue;
    Plan plan{.product = &p};
    plan.tiles = p.rows > kFewRows || p.weight->scales() == PackedMatrix::Scales::kExtreme;
    if (!plan.tiles) {
      plan.scale_sums = scale_sums(p);
      plan.integers = plan.scale_sums && p.weight->format() == PackedMatrix::Format::kFp4;
    }
    if (!plan.tiles && !plan.integers) {
      plans.push_back(plan);
      continue;
    }
    if (!plans.empty() && plans.back().tiles == plan.tiles &&
        plans.back().integers == plan.integers && same_rows(*plans.back().product, p)) {
      plan.packed_at = plans.back().packed_at;
    } else if (plan.integers) {
      plan.packed_at = floats;
      floats += p.rows * integer_words(p.weight->k());
      packs.push_back({&p, 0, plan.packed_at, true});
    } else {
      plan.packed_at = floats;
      floats += p.rows * p.weight->k();
      const RowTiles tiles(p.rows, tile_rows);
      for (std::size_t t = 0; t < tiles.count(); ++t)
        packs.push_back({&p, t, plan.packed_at, false});
    }
    plans.push_back(plan);
  }
  float* packed = packed_rows(floats);
  pool.parallel_for(packs.size(), [&](std::size_t i, int) {
    const Product& p = *packs[i].product;
    if (packs[i].integers) {
      const Integers to = integers_at(packed + packs[i].at, p.rows, p.weight->k());
      for (std::size_t r = 0; r < p.rows; ++r) {
        linear_fp4_integers(p.x + r * p.x_stride, p.weight->k(), to.pairs + r * to.pair_stride,
                            to.units + r * to.unit_stride);
      }
      return;
    }
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
        if (plan.integers) {
          const Integers from =
              integers_at(packed + plan.packed_at, plan.product->rows, plan.product->weight->k());
          unit.pairs = from.pairs;
          unit.units = from.units;
        }
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
