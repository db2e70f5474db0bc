// Which instruction set the vector kernels use. The results do not depend on it.
#pragma once

#include <string_view>

namespace cupel {

// kAvx512Bf16: AVX-512 with products in pairs of bf16 where they give the same bits.
enum class Isa { kAuto, kAvx2, kAvx512, kAvx512Bf16 };

// Throws InputError for a name other than auto, avx2, avx512, avx512-bf16.
Isa parse_isa(std::string_view name);

// Throws InputError if the processor lacks it. Call before any kernel runs.
void set_isa(Isa isa);

// Throws InputError if the processor lacks AVX2, FMA and F16C, the least this program runs on.
void require_baseline_isa();

// "avx2", "avx512" or "avx512-bf16": what the kernels use now.
std::string_view active_isa();
bool uses_bf16_dots();

}  // namespace cupel
