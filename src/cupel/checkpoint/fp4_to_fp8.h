// The published conversion of an FP4 weight to FP8 blocks (spec section 2.6(2)), fast.
#pragma once

#include "cupel/checkpoint/expert_forms.h"

namespace cupel {

// Fills everything of `out`, which has its layout, but `bytes` may hold storage to use again. Bit
// for bit as convert_fp4_weight_to_fp8 of formats/. Throws InputError for a scale that is missing,
// NaN or no power of two.
void convert_fp4_to_fp8(const Tensor& weight, const Tensor* scale, ConvertedExpert& out);

}  // namespace cupel
