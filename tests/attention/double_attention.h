// Attention in double arithmetic over given rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace cupel::test {

struct ExactOutput {
  std::vector<double> value;      // [512]
  std::vector<double> magnitude;  // [512]: sum_k p_k |v_k|
};

// One head: q [512], rows of [512], softmax with the sink in the denominator.
inline ExactOutput exact_attention(const float* q, std::span<const float* const> rows,
                                   double sink) {
  constexpr std::size_t kDim = 512;
  std::vector<double> score(rows.size());
  double top = sink;
  for (std::size_t j = 0; j < rows.size(); ++j) {
    for (std::size_t i = 0; i < kDim; ++i) score[j] += double{q[i]} * rows[j][i];
    score[j] /= std::sqrt(512.0);
    top = std::max(top, score[j]);
  }
  double total = std::exp(sink - top);
  for (double& s : score) total += s = std::exp(s - top);
  ExactOutput out{std::vector<double>(kDim), std::vector<double>(kDim)};
  for (std::size_t j = 0; j < rows.size(); ++j) {
    for (std::size_t i = 0; i < kDim; ++i) {
      out.value[i] += score[j] / total * rows[j][i];
      out.magnitude[i] += score[j] / total * std::fabs(rows[j][i]);
    }
  }
  return out;
}

inline double bf16_ulp(double x) {
  return x == 0 ? 0 : std::ldexp(1.0, std::ilogb(x) - 7);
}

}  // namespace cupel::test
