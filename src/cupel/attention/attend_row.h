// The attention of one query token over a list of keys, one function a backend: three
// implementations of the same mathematics, in the orders of DESIGN section 4.
//
// keys[j] is the j-th row of the list, [512] fp32 as decoded from its stored form; it is key and
// value at once. heads is a multiple of 4. out = softmax(q k / sqrt(512), sink) v.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cupel {

struct AttendRowParams {
  const float* q = nullptr;            // [heads, 512]
  std::span<const float* const> keys;  // at least one
  const float* sink = nullptr;         // [heads]
  std::size_t heads = 0;
  float scale = 0;                        // 512^-0.5
  bool round_bf16 = false;                // weights in P V, and the output
  float* out = nullptr;                   // [heads, 512]
  std::vector<float>* scratch = nullptr;  // kept between calls
};

// One fp32 dot of 512 a score; one maximum over the whole list; sink in the denominator only.
void attend_row_reference(const AttendRowParams& params);
// Eight partial dots of 64 a score, added in tile order; key blocks of 64 with a running maximum;
// sink in the denominator after the last block; multiplication by the reciprocal.
void attend_row_packed(const AttendRowParams& params);
// One dot of 512 a score; key blocks of 16 with a running maximum; sink as one more key at the end;
// division.
void attend_row_unified(const AttendRowParams& params);

}  // namespace cupel
