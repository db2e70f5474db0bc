// The vector helpers of kernels/cpu/simd-inl.h behind plain functions, on the instruction set in
// use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cupel::test {

// count is a multiple of 16.
void vector_exp(const float* in, float* out, std::size_t count);
void vector_round_bf16(const float* in, float* out, std::size_t count);
void vector_round_e4m3(const float* in, float* out, std::size_t count);
void vector_decode_e4m3(const std::uint8_t* codes, float scale, float* out, std::size_t count);
void vector_decode_bf16(const std::uint16_t* bits, float* out, std::size_t count);

// x [16].
float vector_sum(const float* x);
// x [4, 16], out [4].
void vector_sum_four(const float* x, float* out);

}  // namespace cupel::test
