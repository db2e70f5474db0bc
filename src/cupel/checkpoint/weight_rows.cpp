#include "cupel/checkpoint/weight_rows.h"

#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "cupel/formats/bf16.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/formats/weight_blocks.h"

namespace cupel {
namespace {

WeightForm form_of(const Tensor& weight) {
  const bool matrix = weight.shape.size() == 2 && weight.name.ends_with(".weight");
  if (matrix && weight.dtype == Dtype::kI8) return WeightForm::kFp4;
  if (matrix && weight.dtype == Dtype::kF8E4M3) return WeightForm::kFp8;
  return WeightForm::kPlain;
}

const std::array<float, 256>& e4m3_table() {
  static const auto table = [] {
    std::array<float, 256> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = e4m3_to_float(static_cast<std::uint8_t>(i));
    return out;
  }();
  return table;
}

// Both elements of a packed byte.
const std::array<std::array<float, 2>, 256>& e2m1_table() {
  static const auto table = [] {
    std::array<std::array<float, 2>, 256> out{};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto pair = static_cast<std::uint8_t>(i);
      out[i] = {e2m1_to_float(e2m1_even(pair)), e2m1_to_float(e2m1_odd(pair))};
    }
    return out;
  }();
  return table;
}

template <typename T, typename Convert>
void decode_plain(const std::byte* from, std::size_t count, float* out, const Convert& convert) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

}  // namespace

std::vector<float> scale_values(const Tensor& scale) {
  std::vector<float> out;
  if (scale.dtype == Dtype::kF8E8M0) {
    out.reserve(scale.data.size());
    for (const std::byte code : scale.data) {
      out.push_back(e8m0_to_float(static_cast<std::uint8_t>(code)));
    }
  } else if (scale.dtype == Dtype::kF32) {
    out.resize(scale.data.size() / sizeof(float));
    std::memcpy(out.data(), scale.data.data(), out.size() * sizeof(float));
  }
  return out;
}

WeightRows::WeightRows(const Tensor& weight, const Tensor* scale)
    : form_(form_of(weight)), dtype_(weight.dtype), data_(weight.data) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  if (weight.shape.size() >= 2) rows_ = size(weight.shape.front());
  const auto stored = size(weight.elements());
  columns_ = rows_ == 0 ? 0 : stored / rows_;
  row_bytes_ = columns_ * dtype_size(weight.dtype);
  if (form_ == WeightForm::kFp4) columns_ *= 2;
  if (scale == nullptr || form_ == WeightForm::kPlain) return;
  const MatrixShape shape{rows_, columns_};
  const std::size_t expected =
      form_ == WeightForm::kFp4 ? shape.elements() / kFp4WeightGroup : shape.blocks();
  if (size(scale->elements()) == expected) scales_ = scale_values(*scale);
}

std::span<const std::uint8_t> WeightRows::codes(std::size_t first, std::size_t count) const {
  return {reinterpret_cast<const std::uint8_t*>(data_.data()) + first * row_bytes_,
          count * row_bytes_};
}

void WeightRows::decode(std::size_t first, std::size_t count, std::span<float> out) const {
  for (std::size_t i = 0; i < count; ++i) decode_row(first + i, out.data() + i * columns_);
}

void WeightRows::decode_row(std::size_t row, float* out) const {
  const std::byte* from = data_.data() + row * row_bytes_;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  if (form_ == WeightForm::kFp4) {
    const auto& table = e2m1_table();
    const float* scales = scaled() ? scales_.data() + row * (columns_ / kFp4WeightGroup) : nullptr;
    for (std::size_t i = 0; i < columns_ / 2; ++i) {
      const float scale = scales ? scales[2 * i / kFp4WeightGroup] : 1.0f;
      out[2 * i] = table[bytes[i]][0] * scale;
      out[2 * i + 1] = table[bytes[i]][1] * scale;
    }
    return;
  }
  if (form_ == WeightForm::kFp8 || dtype_ == Dtype::kF8E4M3) {
    const auto& table = e4m3_table();
    const std::size_t blocks = MatrixShape{rows_, columns_}.block_columns();
    const float* scales = scaled() ? scales_.data() + row / kWeightBlock * blocks : nullptr;
    for (std::size_t i = 0; i < columns_; ++i) {
      out[i] = table[bytes[i]] * (scales ? scales[i / kWeightBlock] : 1.0f);
    }
    return;
  }
  const auto number = [](auto value) { return static_cast<float>(value); };
  switch (dtype_) {
    case Dtype::kF32:
      std::memcpy(out, from, columns_ * sizeof(float));
      break;
    case Dtype::kBF16:
      decode_plain<std::uint16_t>(from, columns_, out, bf16_to_float);
      break;
    case Dtype::kF16:
      decode_plain<std::uint16_t>(from, columns_, out, half_to_float);
      break;
    case Dtype::kF64:
      decode_plain<double>(from, columns_, out, number);
      break;
    case Dtype::kI64:
      decode_plain<std::int64_t>(from, columns_, out, number);
      break;
    case Dtype::kI32:
      decode_plain<std::int32_t>(from, columns_, out, number);
      break;
    case Dtype::kI16:
      decode_plain<std::int16_t>(from, columns_, out, number);
      break;
    case Dtype::kI8:
      decode_plain<std::int8_t>(from, columns_, out, number);
      break;
    case Dtype::kF8E8M0:
      decode_plain<std::uint8_t>(from, columns_, out, e8m0_to_float);
      break;
    default:
      decode_plain<std::uint8_t>(from, columns_, out, number);
  }
}

std::string form_name(const Tensor& weight, const Tensor* scale) {
  const WeightForm form = form_of(weight);
  if (form == WeightForm::kPlain) return std::string(dtype_name(weight.dtype));
  std::string name = form == WeightForm::kFp4 ? "FP4 1x32" : "FP8 128x128";
  if (scale == nullptr) {
    name += ", no scale";
  } else if (scale->dtype != Dtype::kF8E8M0) {
    name += fmt::format(", {} scales", dtype_name(scale->dtype));
  }
  return name;
}

}  // namespace cupel
