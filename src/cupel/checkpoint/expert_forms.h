// One routed expert's weight from one stored form to another (spec sections 2.6(2), 2.7).
#pragma once

#include <cstdint>
#include <vector>

#include "cupel/checkpoint/config.h"
#include "cupel/checkpoint/safetensors.h"

namespace cupel {

// A block whose values could not all be kept.
struct LossyBlock {
  std::int64_t row = 0;  // first element
  std::int64_t column = 0;
  std::int64_t changed = 0;   // elements
  double relative_error = 0;  // ||new - old|| / ||old|| over the block
  // From FP4: largest less smallest exponent of the scales of groups that are not all zero; more
  // than 14 cannot be kept in general.
  int exponent_spread = 0;
};

struct ConvertedExpert {
  Dtype dtype = Dtype::kI8;
  std::vector<std::int64_t> shape;        // as stored
  std::vector<std::int64_t> scale_shape;  // of E8M0 scales; empty: none
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> scales;

  // Blocks share a scale: 128 x 128 of FP8 (and of BF16, for counting), 1 x 32 of FP4.
  std::int64_t blocks = 0;
  std::vector<LossyBlock> lossy;
  std::int64_t elements = 0;
  std::int64_t changed_elements = 0;
  double max_abs_error = 0;
  double error_squares = 0;
  double squares = 0;
  // To FP4: numbers (row-major) of the groups, not all zero, that more than one scale would keep.
  std::vector<std::int64_t> ambiguous_groups;
};

// FP4 to FP8: block scale = largest group scale / 2^6, bit for bit as convert_fp4_weight_to_fp8.
// Other forms to FP8: the power-of-two rule of 3.3. To FP4: of the power-of-two scales that keep
// all 32 values the largest; if none does, the rule of 3.8.3; a group of zeros takes that rule's
// smallest scale. To BF16: round to nearest. Throws InputError for a NaN, for an FP4 scale that is
// no power of two, and if the weight already has the form.
// `storage`: of an earlier result's `bytes`, to be used again: fresh memory of this size costs more
// than the conversion.
ConvertedExpert convert_expert(const Tensor& weight, const Tensor* scale, ExpertDtype to,
                               std::vector<std::uint8_t> storage = {});

// The stored shape, dtype and scale shape that convert_expert will give, without the bytes.
ConvertedExpert converted_layout(const Tensor& weight, ExpertDtype to);

}  // namespace cupel
