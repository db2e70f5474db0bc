// Several p-values at once (assay.md, "Several cells").
#pragma once

#include <span>
#include <vector>

namespace cupel {

// Holm's adjusted p-values, in the order given: cell i is rejected at family-wise level a if its
// value is at most a. They gate.
std::vector<double> holm_adjusted(std::span<const double> p_values);

// Benjamini-Hochberg q-values, in the order given. Shown, never a gate.
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

}  // namespace cupel
