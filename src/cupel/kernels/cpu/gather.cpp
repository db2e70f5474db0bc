#include "cupel/kernels/gather.h"

#include <algorithm>

#include "cupel/formats/bf16.h"
#include "cupel/kernels/rows.h"

namespace cupel {

void embed(ThreadPool& pool, const EmbedParams& p) {
  parallel_rows(pool, p.rows, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const std::uint16_t* row = p.table + static_cast<std::size_t>(p.ids[r]) * p.width;
      float* out = p.out + r * p.copies * p.width;
      for (std::size_t i = 0; i < p.width; ++i) out[i] = bf16_to_float(row[i]);
      for (std::size_t j = 1; j < p.copies; ++j) std::copy_n(out, p.width, out + j * p.width);
    }
  });
}

void gather_rows(ThreadPool& pool, const GatherRowsParams& p) {
  parallel_rows(pool, p.rows, 16, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const float* row = p.in + static_cast<std::size_t>(p.index[r]) * p.width;
      std::copy_n(row, p.width, p.out + r * p.width);
    }
  });
}

}  // namespace cupel
