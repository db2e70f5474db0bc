// How a set of products is cut into units of work. The cut decides speed alone: an output is summed
// the same way wherever it falls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cupel/kernels/cpu/packed_matrix.h"
#include "cupel/kernels/linear.h"

namespace cupel {

// Up to this many rows a product decodes codes in registers, for more into a cache.
inline constexpr std::size_t kFewRows = 4;

// Rows cut into tiles of nearly equal size, none above `largest`.
class RowTiles {
 public:
  RowTiles(std::size_t rows, std::size_t largest)
      : rows_(rows), tiles_((rows + largest - 1) / largest) {}
  std::size_t count() const { return tiles_; }
  std::size_t begin(std::size_t tile) const {
    return tile * (rows_ / tiles_) + std::min(tile, rows_ % tiles_);
  }

 private:
  std::size_t rows_, tiles_;
};

// LinearParams with its row range applied.
struct Product {
  const float* x;  // [rows, k], rows x_stride apart
  std::size_t x_stride;
  std::size_t rows;
  const PackedMatrix* weight;  // [n, k]
  float* out;                  // [rows, n], rows out_stride apart
  std::size_t out_stride;
  bool round_bf16;
};

struct LinearUnit {
  const Product* product = nullptr;
  std::size_t panel_begin = 0, panel_end = 0;
  bool scale_sums = false;  // a few rows: scales may be applied to block sums
  // With scale_sums and kFp4: the rows as integers (fp4_integers-inl.h), [rows][k/2] and
  // [rows][k/32].
  const std::int32_t* pairs = nullptr;
  const float* units = nullptr;
  const float* packed_x = nullptr;  // many rows: [tile][k][rows of the tile]; nullptr: a few rows
  std::size_t tile_begin = 0, tile_end = 0;
};

void run_linear_unit(const LinearUnit& unit);
// Rows of the largest register tile.
std::size_t linear_tile_rows();
bool linear_moderate_inputs(const float* x, std::size_t count);
void linear_fp4_integers(const float* x, std::size_t k, std::int32_t* pairs, float* units);

}  // namespace cupel
