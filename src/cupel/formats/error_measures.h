// How far a computed array lies from a reference. Sums run in double over ascending index, so that
// a result depends on the values alone. Lengths that differ throw std::invalid_argument. A NaN in
// either array, or an infinity at the same place and of the same sign in both, makes every measure
// NaN: an undefined error never reads as a small one.
#pragma once

#include <span>

namespace cupel {

// ||a - r|| / ||r||. 0 when both are zero or empty; infinity when only the reference is zero.
double relative_frobenius_error(std::span<const float> actual, std::span<const float> reference);

// max |a - r|, 0 for empty arrays.
double max_abs_error(std::span<const float> actual, std::span<const float> reference);

// 10 log10(||r||^2 / ||a - r||^2) in dB. Infinity when the arrays are equal, also if both are zero;
// minus infinity when only the reference is zero.
double snr_db(std::span<const float> actual, std::span<const float> reference);

// <a, r> / (||a|| ||r||), within [-1, 1]. NaN when either is zero: it has no direction.
double cosine_similarity(std::span<const float> actual, std::span<const float> reference);

}  // namespace cupel
