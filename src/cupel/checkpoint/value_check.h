// Values that would poison everything computed from them. Each reads the whole tensor.
#pragma once

#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// F8_E8M0: no byte is 255 (NaN). F32: every element is finite and not negative. Throws InputError
// naming tensor and byte offset in the file.
void check_scale_values(const Tensor& scale);

// I64: every element is in [0, experts). Throws InputError naming tensor, row and byte offset.
void check_expert_ids(const Tensor& table, int experts);

}  // namespace cupel
