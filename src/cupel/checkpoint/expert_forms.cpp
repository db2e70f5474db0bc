#include "cupel/checkpoint/expert_forms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/fp4_to_fp8.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/weight_rows.h"
#include "cupel/formats/bf16.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/formats/quantise.h"
#include "cupel/formats/weight_blocks.h"

namespace cupel {
namespace {

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

[[noreturn]] void fail(const Tensor& tensor, std::string_view expected, std::string_view found) {
  throw InputError(tensor_where(tensor.file, tensor.name), expected, found);
}

// Error of one block between two arrays of `rows` x `columns` elements that lie `stride` apart.
void measure_block(const float* before, const float* after, std::size_t stride, std::size_t rows,
                   std::size_t columns, LossyBlock block, ConvertedExpert& out) {
  double error = 0;
  double squares = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double x = before[r * stride + c];
      const double difference = after[r * stride + c] - x;
      squares += x * x;
      error += difference * difference;
      block.changed += difference != 0;
      out.max_abs_error = std::max(out.max_abs_error, std::fabs(difference));
    }
  }
  out.error_squares += error;
  out.squares += squares;
  out.changed_elements += block.changed;
  ++out.blocks;
  if (block.changed == 0) return;
  block.relative_error = squares == 0 ? 0 : std::sqrt(error / squares);
  out.lossy.push_back(block);
}

// Exponents of scales that keep all values of the group, the largest first. Empty for zeros too.
std::vector<int> legal_exponents(std::span<const float> group) {
  const float amax = magnitude_max(group);
  std::vector<int> legal;
  if (!(amax > 0)) return legal;
  // amax = 1 or 1.5 times 2^k: as code 0.5 or 1.5 under the largest scale, 4 or 6 under the
  // smallest.
  int exponent = 0;
  const float mantissa = std::frexp(amax, &exponent);  // 0.5 or 0.75 if the format can hold it
  if (mantissa != 0.5f && mantissa != 0.75f) return legal;
  const int highest = mantissa == 0.5f ? exponent : exponent - 1;  // amax = 0.5 or 1.5 * 2^highest
  const int steps = mantissa == 0.5f ? 4 : 3;
  for (int e = highest; e > highest - steps; --e) {
    if (e < -kE8m0Bias || e > kE8m0Bias) continue;
    const bool kept = std::ranges::all_of(group, [&](float value) {
      const float scaled = std::ldexp(value, -e);
      return round_e2m1(scaled) == scaled;
    });
    if (kept) legal.push_back(e);
  }
  return legal;
}

void encode_fp4_rows(std::span<const float> values, std::size_t first_group, ConvertedExpert& out,
                     std::span<std::uint8_t> packed, std::span<std::uint8_t> scales) {
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const auto group = values.subspan(g * kFp4WeightGroup, kFp4WeightGroup);
    const auto bytes = packed.subspan(g * kFp4WeightGroup / 2, kFp4WeightGroup / 2);
    const std::vector<int> legal = legal_exponents(group);
    if (legal.empty()) {
      encode_e2m1(group, kFp4WeightGroup, bytes, scales.subspan(g, 1));
      continue;
    }
    if (legal.size() > 1) {
      out.ambiguous_groups.push_back(static_cast<std::int64_t>(first_group + g));
    }
    scales[g] = e8m0_from_exponent(legal.front());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto code = [&](float value) {
        return e2m1_from_float(std::ldexp(value, -legal.front()));
      };
      bytes[i] = static_cast<std::uint8_t>(code(group[2 * i]) | code(group[2 * i + 1]) << 4);
    }
  }
}

// Any form to any other, 128 rows at a time, by way of the values.
void convert_values(const Tensor& weight, const Tensor* scale, ConvertedExpert& out) {
  const WeightRows rows(weight, scale);
  if (rows.form() != WeightForm::kPlain && !rows.scaled()) {
    fail(weight, "a scale of the right shape beside it", "none");
  }
  const std::size_t columns = rows.columns();
  const std::size_t row_bytes = size(out.shape[1]) * dtype_size(out.dtype);
  out.bytes.resize(size(out.shape[0]) * row_bytes);
  if (!out.scale_shape.empty()) out.scales.resize(size(out.scale_shape[0] * out.scale_shape[1]));
  std::vector<float> before(std::min(kWeightBlock, rows.rows()) * columns);
  std::vector<float> after(before.size());
  for (std::size_t first = 0; first < rows.rows(); first += kWeightBlock) {
    const std::size_t count = std::min(kWeightBlock, rows.rows() - first);
    const MatrixShape band{count, columns};
    const auto values = std::span(before).first(band.elements());
    const auto again = std::span(after).first(band.elements());
    rows.decode(first, count, values);
    if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
      fail(weight, "finite values",
           fmt::format("NaN or infinity in rows {} to {}", first, first + count - 1));
    }
    const auto bytes = std::span(out.bytes).subspan(first * row_bytes, count * row_bytes);
    std::size_t block_rows = kWeightBlock;
    std::size_t block_columns = kWeightBlock;
    if (out.dtype == Dtype::kBF16) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint16_t bits = bf16_from_float(values[i]);
        std::memcpy(bytes.data() + 2 * i, &bits, 2);
        again[i] = bf16_to_float(bits);
      }
    } else if (out.dtype == Dtype::kF8E4M3) {
      const auto scales =
          std::span(out.scales).subspan(first / kWeightBlock * band.block_columns(), band.blocks());
      encode_fp8_weight(values, band, bytes, scales);
      decode_fp8_weight(bytes, scales, band, again);
    } else {
      const std::size_t groups = columns / kFp4WeightGroup;
      const auto scales = std::span(out.scales).subspan(first * groups, count * groups);
      encode_fp4_rows(values, first * groups, out, bytes, scales);
      decode_fp4_weight(bytes, scales, band, again);
      block_rows = 1;
      block_columns = kFp4WeightGroup;
    }
    for (std::size_t r = 0; r < count; r += block_rows) {
      for (std::size_t c = 0; c < columns; c += block_columns) {
        LossyBlock block;
        block.row = static_cast<std::int64_t>(first + r);
        block.column = static_cast<std::int64_t>(c);
        measure_block(values.data() + r * columns + c, again.data() + r * columns + c, columns,
                      std::min(block_rows, count - r), std::min(block_columns, columns - c), block,
                      out);
      }
    }
  }
}

}  // namespace

ConvertedExpert converted_layout(const Tensor& weight, ExpertDtype to) {
  if (weight.shape.size() != 2) fail(weight, "a matrix", weight.shape_text());
  const std::int64_t rows = weight.shape[0];
  const std::int64_t columns = weight.shape[1] * (weight.dtype == Dtype::kI8 ? 2 : 1);
  constexpr auto kGroup = static_cast<std::int64_t>(kFp4WeightGroup);
  constexpr auto kBlock = static_cast<std::int64_t>(kWeightBlock);
  ConvertedExpert out;
  out.elements = rows * columns;
  switch (to) {
    case ExpertDtype::kFp4:
      out.dtype = Dtype::kI8;
      out.shape = {rows, columns / 2};
      out.scale_shape = {rows, columns / kGroup};
      break;
    case ExpertDtype::kFp8:
      out.dtype = Dtype::kF8E4M3;
      out.shape = {rows, columns};
      out.scale_shape = {(rows + kBlock - 1) / kBlock, (columns + kBlock - 1) / kBlock};
      break;
    case ExpertDtype::kBf16:
      out.dtype = Dtype::kBF16;
      out.shape = {rows, columns};
      break;
  }
  if (out.dtype == weight.dtype) {
    fail(weight, "experts in another form", fmt::format("{} already", expert_dtype_name(to)));
  }
  if (columns % kGroup != 0) fail(weight, "columns that are a multiple of 32", weight.shape_text());
  return out;
}

ConvertedExpert convert_expert(const Tensor& weight, const Tensor* scale, ExpertDtype to,
                               std::vector<std::uint8_t> storage) {
  ConvertedExpert out = converted_layout(weight, to);
  out.bytes = std::move(storage);
  if (weight.dtype == Dtype::kI8 && to == ExpertDtype::kFp8) {
    convert_fp4_to_fp8(weight, scale, out);
  } else {
    convert_values(weight, scale, out);
  }
  return out;
}

}  // namespace cupel
