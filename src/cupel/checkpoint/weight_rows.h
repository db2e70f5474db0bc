// The values of a stored weight, row by row, whatever its form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cupel/checkpoint/safetensors.h"

namespace cupel {

enum class WeightForm {
  kFp4,    // I8, two elements a byte, one scale for 1 x 32
  kFp8,    // F8_E4M3, one scale for 128 x 128
  kPlain,  // one value an element
};

// Decodes any rows of a weight to float32. Integers and F64 are rounded. A missing or misshapen
// scale counts as ones.
class WeightRows {
 public:
  WeightRows(const Tensor& weight, const Tensor* scale);

  WeightForm form() const { return form_; }
  // Of the elements: [rows, columns]. A vector is one row; a tensor of more than two dimensions has
  // the first as its rows.
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  bool scaled() const { return !scales_.empty(); }
  // As floats, in the order of the file.
  const std::vector<float>& scales() const { return scales_; }

  // Stored bytes of rows [first, first + count).
  std::span<const std::uint8_t> codes(std::size_t first, std::size_t count) const;
  // out [count, columns].
  void decode(std::size_t first, std::size_t count, std::span<float> out) const;

 private:
  void decode_row(std::size_t row, float* out) const;

  WeightForm form_ = WeightForm::kPlain;
  Dtype dtype_ = Dtype::kF32;
  std::size_t rows_ = 1;
  std::size_t columns_ = 1;
  std::size_t row_bytes_ = 0;
  std::span<const std::byte> data_;
  std::vector<float> scales_;
};

// "FP4 32", "FP8 128x128", or the dtype's name.
std::string form_name(const Tensor& weight, const Tensor* scale);

// The scales of a tensor as floats. Empty for a dtype that is no scale's.
std::vector<float> scale_values(const Tensor& scale);

}  // namespace cupel
