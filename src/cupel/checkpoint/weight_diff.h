// How one stored weight differs from another: bit for bit, in value, and in the ways that are known
// to go wrong (spec section 8.25-26).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cupel/checkpoint/checkpoint_view.h"

namespace cupel {

// XXH3-128 of the stored bytes, the scale's apart. Empty without data.
struct WeightHash {
  std::string weight;
  std::string scale;

  bool operator==(const WeightHash&) const = default;
};
// Reads the tensors in order and drops their pages behind it unless `keep` (a second look is near).
WeightHash hash_weight(const ViewedWeight& weight, bool keep = false);

// Shares of codes, of FP4 and FP8 weights; zero for others.
struct CodeShares {
  double zero = 0;
  double subnormal = 0;  // below the smallest normal, not zero
  double saturated = 0;  // the largest magnitude
};

struct WeightDiff {
  bool same_shape = true;  // of the elements; nothing below is set otherwise
  bool same_values = true;

  // Over elements that are numbers on both sides, OLD the reference.
  double relative_change = 0;  // ||new - old|| / ||old||; infinity if only OLD is zero
  double cosine = 1;           // NaN when either is zero
  double gain = 1;             // g that minimises ||new - g old||
  double gain_residual = 0;    // ||new - g old|| / ||new||
  double max_abs_change = 0;
  double old_norm = 0;
  double new_norm = 0;
  std::uint64_t elements = 0;
  std::uint64_t changed_elements = 0;
  std::uint64_t old_nan = 0;  // NaN or infinite
  std::uint64_t new_nan = 0;

  // Largest magnitudes of blocks of 128 x 128 elements.
  std::uint64_t blocks = 0;
  std::uint64_t changed_amax = 0;
  double max_amax_octaves = 0;  // max |log2(new / old)| where both are positive

  // Scales, where both sides have as many. Exponents: log2(new / old).
  bool scales_compared = false;
  std::uint64_t scales = 0;
  std::uint64_t changed_scales = 0;
  double lowest_exponent_change = 0;
  double highest_exponent_change = 0;
  std::vector<std::uint64_t> first_changed_scales;  // numbers in storage order, at most 16

  CodeShares old_codes;
  CodeShares new_codes;
  bool nibbles_swapped = false;  // FP4: each byte is the other's with its halves swapped
  bool same_codes = false;       // the weight's own bytes are equal: only scales differ

  // Same form only, up to 2^20 elements: the same rows (of a vector: elements) in another order.
  bool permuted = false;
  std::int64_t shift = 0;  // of a permutation: rows moved down cyclically by so many; 0: no shift

  // Rows whose relative change exceeds 4 times the median row's, and is at least 0.05.
  std::uint64_t outlier_rows = 0;
  std::int64_t worst_row = -1;
  double worst_row_change = 0;
  double median_row_change = 0;
};

// Both must have data. Memory: two bands of 128 rows as floats, and 8 bytes a row. Reads them once
// more.
WeightDiff diff_weights(const ViewedWeight& before, const ViewedWeight& after);

}  // namespace cupel
