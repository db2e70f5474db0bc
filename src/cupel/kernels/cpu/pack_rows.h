// Sixteen rows into one panel: out[i][lane] = row lane's unit i.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cupel {

// `rows` <= 16 rows of `bytes` bytes, `stride` apart, at any alignment; `unit` is 1, 2 or 4 bytes
// and divides `bytes`. The lanes of missing rows are left as they are. For each line read, the one
// `ahead` bytes further is asked for; it need not exist.
void pack_rows(const std::byte* in, std::size_t stride, std::size_t rows, std::size_t bytes,
               std::size_t unit, std::uint8_t* out, std::size_t ahead = 0);

// FP4: brings the codes of every 32-bit word from published order (index s at bits 4 s) into that
// of PackedMatrix::fp4_shift.
void pair_fp4_words(std::uint8_t* words, std::size_t bytes);

}  // namespace cupel
