// Sixteen rows into one panel: out[i][lane] = row lane's unit i.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cupel {

// `rows` <= 16 rows of `bytes` bytes, `stride` apart, at any alignment; `unit` is 1, 2 or 4 bytes
// and divides `bytes`. The lanes of missing rows are left as they are.
void pack_rows(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
               std::size_t unit, std::uint8_t* out);

}  // namespace cupel
