#include "cupel/kernels/cpu/linear_units.h"

#include <atomic>
#include <vector>

#include "cupel/kernels/aligned_buffer.h"
#include "cupel/kernels/cpu/bf16_dots.h"
#include "cupel/kernels/isa.h"

namespace cupel {
namespace {

constexpr std::size_t kFewRowsPanels = 4;  // of a unit
constexpr std::size_t kTilesPanels = 8;
constexpr std::size_t kTilesPerUnit = 16;
constexpr std::size_t kPackDepth = 64;

// What a kernel reads of a product's rows: as they are, or packed.
enum class Inputs { kAsGiven, kIntegers, kPairs, kTiles, kTilesOfPairs };

// What is decided for a whole product.
struct Plan {
  const Product* product;
  Inputs inputs = Inputs::kAsGiven;
  bool scale_sums = false;
  std::size_t packer = 0;     // the plan that packs these rows: this one, or an earlier one
  std::size_t packed_at = 0;  // in words of 32 bits
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

bool is_few(const Product& p) {
  return p.rows <= kFewRows && p.weight->scales() != PackedMatrix::Scales::kExtreme;
}

bool allows_pairs(const PackedMatrix& w) {
  const bool small = w.format() == PackedMatrix::Format::kFp4 ||
                     (w.format() == PackedMatrix::Format::kFp8 && w.k() % 4 == 0);
  return small && w.scales() == PackedMatrix::Scales::kModerate && uses_bf16_dots();
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
  std::uint32_t* pairs;
  float* units;
};
Integers integers_at(float* words, std::size_t rows, std::size_t k) {
  return {.pairs = reinterpret_cast<std::uint32_t*>(words), .units = words + rows * k / 2};
}

// Whether what is decided and packed for one serves the other.
bool alike(const Product& a, const Product& b) {
  return a.x == b.x && a.x_stride == b.x_stride && a.rows == b.rows &&
         a.weight->k() == b.weight->k() && a.weight->format() == b.weight->format() &&
         a.weight->scales() == b.weight->scales();
}

// Inputs of the running loop, repacked; kept, so that steps do not allocate.
float* packed_rows(std::size_t floats) {
  static thread_local AlignedBuffer buffer;
  if (buffer.size() < floats * sizeof(float)) buffer = AlignedBuffer(floats * sizeof(float));
  return reinterpret_cast<float*>(buffer.data());
}

bool pack_few_pairs(const Product& p, float* words) {
  const std::size_t k = p.weight->k();
  auto* to = reinterpret_cast<std::uint32_t*>(words);
  for (std::size_t r = 0; r < p.rows; ++r) {
    if (!bf16_pairs(p.x + r * p.x_stride, p.x_stride, 1, k, to + r * k / 2)) return false;
  }
  return true;
}

void pack_integers(const Product& p, float* words) {
  const std::size_t k = p.weight->k();
  const Integers to = integers_at(words, p.rows, k);
  for (std::size_t r = 0; r < p.rows; ++r) {
    linear_fp4_integers(p.x + r * p.x_stride, k, to.pairs + r * k / 2,
                        to.units + r * (k / PackedMatrix::kFp4Group));
  }
}

// Room for any packed form of the rows.
std::size_t packed_words(const Product& p) {
  return p.rows * p.weight->k();
}

std::vector<Plan> plans_of(std::span<const Product> products) {
  std::vector<Plan> plans;
  std::size_t words = 0;
  for (const Product& p : products) {
    if (p.rows == 0) continue;
    Plan plan{.product = &p, .packer = plans.size(), .packed_at = words};
    if (!plans.empty() && alike(*plans.back().product, p)) {
      plan.packer = plans.back().packer;
      plan.packed_at = plans.back().packed_at;
    } else {
      words += packed_words(p);
    }
    plans.push_back(plan);
  }
  return plans;
}

// Chooses, and packs what is cheap to pack at once. What is left is packed by the loops below.
void choose_inputs(Plan& plan, float* words) {
  const Product& p = *plan.product;
  const bool pairs = allows_pairs(*p.weight);
  if (!is_few(p)) {
    plan.inputs = pairs ? Inputs::kTilesOfPairs : Inputs::kTiles;
  } else if (pairs && pack_few_pairs(p, words)) {
    plan.inputs = Inputs::kPairs;
  } else {
    plan.scale_sums = scale_sums(p);
    const bool integers = plan.scale_sums && p.weight->format() == PackedMatrix::Format::kFp4;
    plan.inputs = integers ? Inputs::kIntegers : Inputs::kAsGiven;
  }
}

struct PackJob {
  std::size_t plan, tile;
};

// Runs the packing of those plans that pack their own rows and want one of these forms. Plans whose
// rows are no pairs are marked in `unfit`.
void pack_rows_of(ThreadPool& pool, std::span<const Plan> plans, std::span<const Inputs> forms,
                  float* packed, std::span<char> unfit) {
  const std::size_t tile_rows = linear_tile_rows();
  std::vector<PackJob> jobs;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Inputs inputs = plans[i].inputs;
    if (plans[i].packer != i || std::ranges::find(forms, inputs) == forms.end()) continue;
    const std::size_t tiles =
        inputs == Inputs::kIntegers ? 1 : RowTiles(plans[i].product->rows, tile_rows).count();
    for (std::size_t t = 0; t < tiles; ++t) jobs.push_back({i, t});
  }
  pool.parallel_for(jobs.size(), [&](std::size_t i, int) {
    const Plan& plan = plans[jobs[i].plan];
    const Product& p = *plan.product;
    float* words = packed + plan.packed_at;
    if (plan.inputs == Inputs::kIntegers) return pack_integers(p, words);
    const RowTiles tiles(p.rows, tile_rows);
    const std::size_t row = tiles.begin(jobs[i].tile);
    const std::size_t rows = tiles.begin(jobs[i].tile + 1) - row, k = p.weight->k();
    if (plan.inputs == Inputs::kTiles) return pack_tile(p, row, rows, words + row * k);
    auto* pairs = reinterpret_cast<std::uint32_t*>(words) + row * k / 2;
    if (!bf16_pairs(p.x + row * p.x_stride, p.x_stride, rows, k, pairs)) {
      std::atomic_ref(unfit[jobs[i].plan]).store(1, std::memory_order_relaxed);
    }
  });
}

// Brings the rows of all products into the form their kernel reads.
void pack_inputs(ThreadPool& pool, std::span<Plan> plans, float* packed) {
  std::vector<char> unfit(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Plan& plan = plans[i];
    if (plan.packer == i) {
      choose_inputs(plan, packed + plan.packed_at);
    } else {
      plan.inputs = plans[plan.packer].inputs;
      plan.scale_sums = plans[plan.packer].scale_sums;
    }
  }
  constexpr Inputs kFirst[] = {Inputs::kIntegers, Inputs::kTiles, Inputs::kTilesOfPairs};
  pack_rows_of(pool, plans, kFirst, packed, unfit);
  if (std::ranges::find(unfit, 1) == unfit.end()) return;
  std::vector<Plan> again;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (unfit[plans[i].packer] == 0) continue;
    plans[i].inputs = Inputs::kTiles;
    if (plans[i].packer != i) continue;
    again.push_back(plans[i]);
    again.back().packer = again.size() - 1;
  }
  pack_rows_of(pool, again, kFirst, packed, unfit);
}

LinearUnit unit_of(const Plan& plan, float* packed) {
  const Product& p = *plan.product;
  float* words = packed + plan.packed_at;
  LinearUnit unit{.product = plan.product, .scale_sums = plan.scale_sums};
  unit.dots = plan.inputs == Inputs::kPairs || plan.inputs == Inputs::kTilesOfPairs;
  if (!is_few(p)) {
    unit.packed_x = words;
  } else if (plan.inputs == Inputs::kIntegers) {
    const Integers from = integers_at(words, p.rows, p.weight->k());
    unit.pairs = from.pairs;
    unit.units = from.units;
  } else if (plan.inputs == Inputs::kPairs) {
    unit.pairs = reinterpret_cast<const std::uint32_t*>(words);
  }
  return unit;
}

}  // namespace

void linear(ThreadPool& pool, std::span<const LinearParams> params) {
  std::vector<Product> products;
  products.reserve(params.size());
  for (const LinearParams& p : params) products.push_back(product_of(p));
  std::vector<Plan> plans = plans_of(products);
  if (plans.empty()) return;
  float* packed = packed_rows(plans.back().packed_at + packed_words(*plans.back().product));
  pack_inputs(pool, plans, packed);

  // The pool gives a thread a contiguous part of the units first: a thread's share of each
  // product's panels stands together, as it does at loading.
  const auto shares = static_cast<std::size_t>(pool.threads());
  std::vector<LinearUnit> units;
  for (std::size_t share = 0; share < shares; ++share) {
    for (const Plan& plan : plans) {
      const bool few = is_few(*plan.product);
      const std::size_t step = few ? kFewRowsPanels : kTilesPanels;
      const std::size_t panels = plan.product->weight->panels();
      const std::size_t groups = (panels + step - 1) / step;
      const std::size_t begin = groups * share / shares * step;
      const std::size_t end = std::min(panels, groups * (share + 1) / shares * step);
      const RowTiles tiles(plan.product->rows, linear_tile_rows());
      const RowTiles tile_ranges(tiles.count(), kTilesPerUnit);
      LinearUnit unit = unit_of(plan, packed);
      for (std::size_t panel = begin; panel < end; panel += step) {
        unit.panel_begin = panel;
        unit.panel_end = std::min(panel + step, end);
        for (std::size_t range = 0; range < (few ? 1 : tile_ranges.count()); ++range) {
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
