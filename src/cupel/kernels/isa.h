// Which instruction set the vector kernels use. The results do not depend on it.
#pragma once

#include <string_view>

namespace cupel {

enum class Isa { kAuto, kAvx2, kAvx512 };

// Throws InputError for a name other than auto, avx2, avx512.
Isa parse_isa(std::string_view name);

// Throws InputError if the processor lacks it. Call before any kernel runs.
void set_isa(Isa isa);

// Throws InputError if the processor lacks AVX2, FMA and F16C, the least this program runs on.
void require_baseline_isa();

// "avx2" or "avx512": what the kernels use now.
std::string_view active_isa();

}  // namespace cupel
