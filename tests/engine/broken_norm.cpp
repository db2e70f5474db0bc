// A norm whose order of summation depends on how many rows there are: what the contract forbids.
// Linked instead of the kernels' own, to show that the contract's test sees it; numerics float32
// only, where no rounding hides the difference.
#include <cmath>

#include "cupel/kernels/norm.h"

namespace cupel {
namespace {

float sum_of_squares_by_shape(const float* x, std::size_t width, std::size_t rows) {
  const std::size_t parts = rows == 1 ? 1 : 8;  // "split the row where there are many"
  float sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    float partial = 0;
    for (std::size_t i = part; i < width; i += parts) partial += x[i] * x[i];
    sum += partial;
  }
  return sum;
}

}  // namespace

float sum_of_squares(const float* x, std::size_t width) {
  return sum_of_squares_by_shape(x, width, 1);
}

void rms_norm(ThreadPool&, const RmsNormParams& p) {
  for (std::size_t r = 0; r < p.rows; ++r) {
    const float* x = p.in + r * p.width;
    float* y = p.out + r * p.width;
    const float mean = sum_of_squares_by_shape(x, p.width, p.rows) / static_cast<float>(p.width);
    const float scale = 1.0f / std::sqrt(mean + p.eps);
    for (std::size_t i = 0; i < p.width; ++i) y[i] = p.weight[i] * (x[i] * scale);
  }
}

void head_norm(ThreadPool&, const HeadNormParams& p) {
  for (std::size_t r = 0; r < p.rows; ++r) {
    float* x = p.x + r * p.width;
    const float mean = sum_of_squares_by_shape(x, p.width, p.rows) / static_cast<float>(p.width);
    const float scale = 1.0f / std::sqrt(mean + p.eps);
    for (std::size_t i = 0; i < p.width; ++i) x[i] *= scale;
  }
}

}  // namespace cupel
