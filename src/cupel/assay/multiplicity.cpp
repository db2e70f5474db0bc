#include "cupel/assay/multiplicity.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace cupel {
namespace {

std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

}  // namespace

std::vector<double> holm_adjusted(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  std::size_t left = p_values.size();
  for (const std::size_t i : ascending_order(p_values)) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(left--) * p_values[i]));
    adjusted[i] = largest;
  }
  return adjusted;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  std::vector<double> q(p_values.size());
  const std::vector<std::size_t> order = ascending_order(p_values);
  const auto count = static_cast<double>(p_values.size());
  double smallest = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const std::size_t i = order[rank - 1];
    smallest = std::min(smallest, p_values[i] * count / static_cast<double>(rank));
    q[i] = smallest;
  }
  return q;
}

}  // namespace cupel
