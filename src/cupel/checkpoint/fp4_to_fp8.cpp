#include "cupel/checkpoint/fp4_to_fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <hwy/highway.h>

#include "cupel/base/error.h"
#include "cupel/checkpoint/quote.h"
#include "cupel/checkpoint/weight_rows.h"
#include "cupel/formats/e2m1.h"
#include "cupel/formats/e4m3.h"
#include "cupel/formats/e8m0.h"
#include "cupel/formats/weight_blocks.h"

namespace cupel {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

[[noreturn]] void fail(const Tensor& tensor, std::string_view expected, std::string_view found) {
  throw InputError(tensor_where(tensor.file, tensor.name), expected, found);
}

// Scales of an FP4 weight as E8M0 codes.
std::vector<std::uint8_t> fp4_scale_codes(const Tensor& weight, const Tensor* scale) {
  if (scale == nullptr) fail(weight, "a scale beside the FP4 weight", "none");
  std::vector<std::uint8_t> codes;
  if (scale->dtype == Dtype::kF8E8M0) {
    codes.resize(scale->data.size());
    std::memcpy(codes.data(), scale->data.data(), codes.size());
  } else {
    for (const float value : scale_values(*scale)) {
      const auto code = e8m0_from_float(value);
      if (!code) fail(*scale, "FP4 scales that are powers of two", fmt::format("{}", value));
      codes.push_back(*code);
    }
  }
  if (std::ranges::find(codes, kE8m0Nan) != codes.end()) {
    fail(*scale, "scales that are numbers", "NaN (255)");
  }
  return codes;
}

// Every FP4 code under every difference between group and block exponent. Below kLowest every value
// rounds to a signed zero, as at kLowest.
class Fp4ToFp8Tables {
 public:
  static constexpr int kLowest = -14;
  static constexpr int kHighest = kFp4BlockScaleHeadroom;
  static constexpr int kLossless = -8;  // from here up 0.5 * 2^shift is a multiple of 2^-9

  struct Table {
    alignas(16) std::array<std::uint8_t, 16> codes{};  // by FP4 code
    std::array<std::uint8_t, 256> changed{};           // of the two elements of a packed byte
  };

  static const Fp4ToFp8Tables& get() {
    static const Fp4ToFp8Tables tables;
    return tables;
  }
  const Table& at(int shift) const {
    return tables_[static_cast<std::size_t>(std::clamp(shift, kLowest, kHighest) - kLowest)];
  }

 private:
  Fp4ToFp8Tables() {
    for (int shift = kLowest; shift <= kHighest; ++shift) {
      Table& table = tables_[static_cast<std::size_t>(shift - kLowest)];
      std::array<std::uint8_t, 16> lost{};
      for (std::uint8_t code = 0; code < 16; ++code) {
        const float exact = std::ldexp(e2m1_to_float(code), shift);
        table.codes[code] = e4m3_from_float(exact);
        lost[code] = e4m3_to_float(table.codes[code]) != exact;
      }
      for (std::size_t byte = 0; byte < 256; ++byte) {
        table.changed[byte] = static_cast<std::uint8_t>(lost[byte & 15] + lost[byte >> 4]);
      }
    }
  }

  std::array<Table, kHighest - kLowest + 1> tables_;
};

// 32 elements: 16 packed bytes to 32 codes.
void convert_group(const std::uint8_t* packed, const Fp4ToFp8Tables::Table& table,
                   std::uint8_t* codes) {
  const hn::Full128<std::uint8_t> d;
  const auto lookup = hn::Load(d, table.codes.data());
  const auto pairs = hn::LoadU(d, packed);
  const auto even = hn::TableLookupBytes(lookup, hn::And(pairs, hn::Set(d, 15)));
  const auto odd = hn::TableLookupBytes(lookup, hn::ShiftRight<4>(pairs));
  hn::StoreU(hn::InterleaveLower(d, even, odd), d, codes);
  hn::StoreU(hn::InterleaveUpper(d, even, odd), d, codes + 16);
}

int exponent_spread(std::span<const std::uint8_t> packed, std::span<const std::uint8_t> scales,
                    std::size_t columns, std::size_t rows, std::size_t width) {
  int lowest = kE8m0Nan;
  int highest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < width; c += kFp4WeightGroup) {
      const auto group = packed.subspan((r * columns + c) / 2, kFp4WeightGroup / 2);
      if (std::ranges::all_of(group, [](std::uint8_t pair) { return (pair & 0x77) == 0; }))
        continue;
      const int scale = scales[(r * columns + c) / kFp4WeightGroup];
      lowest = std::min(lowest, scale);
      highest = std::max(highest, scale);
    }
  }
  return highest < lowest ? 0 : highest - lowest;
}

}  // namespace

void convert_fp4_to_fp8(const Tensor& weight, const Tensor* scale, ConvertedExpert& out) {
  const std::vector<std::uint8_t> groups = fp4_scale_codes(weight, scale);
  const MatrixShape shape{size(out.shape[0]), size(out.shape[1])};
  const std::span<const std::uint8_t> packed(
      reinterpret_cast<const std::uint8_t*>(weight.data.data()), weight.data.size());
  out.bytes.resize(shape.elements());
  out.scales.resize(shape.blocks());
  const Fp4ToFp8Tables& tables = Fp4ToFp8Tables::get();
  const std::size_t row_groups = shape.columns / kFp4WeightGroup;
  for (std::size_t block = 0; block < shape.blocks(); ++block) {
    const std::size_t row = block / shape.block_columns() * kWeightBlock;
    const std::size_t column = block % shape.block_columns() * kWeightBlock;
    const std::size_t rows = std::min(kWeightBlock, shape.rows - row);
    const std::size_t width = std::min(kWeightBlock, shape.columns - column);
    std::uint8_t largest = 0;
    for (std::size_t r = row; r < row + rows; ++r) {
      const auto* first = groups.data() + r * row_groups + column / kFp4WeightGroup;
      largest = std::max(largest, *std::max_element(first, first + width / kFp4WeightGroup));
    }
    const int block_code = std::max(0, largest - kFp4BlockScaleHeadroom);
    out.scales[block] = static_cast<std::uint8_t>(block_code);
    LossyBlock lossy{static_cast<std::int64_t>(row), static_cast<std::int64_t>(column), 0, 0, 0};
    for (std::size_t r = row; r < row + rows; ++r) {
      for (std::size_t c = column; c < column + width; c += kFp4WeightGroup) {
        const std::size_t first = r * shape.columns + c;
        const int shift = groups[first / kFp4WeightGroup] - block_code;
        const auto& table = tables.at(shift);
        const std::uint8_t* from = packed.data() + first / 2;
        std::uint8_t* to = out.bytes.data() + first;
        convert_group(from, table, to);
        if (shift >= Fp4ToFp8Tables::kLossless) continue;
        for (std::size_t i = 0; i < kFp4WeightGroup / 2; ++i)
          lossy.changed += table.changed[from[i]];
      }
    }
    ++out.blocks;
    if (lossy.changed == 0) continue;
    // Rare: measured the slow way.
    const std::size_t first = row * shape.columns + column;
    lossy.exponent_spread = exponent_spread(packed.subspan(first / 2),
                                            std::span(groups).subspan(first / kFp4WeightGroup),
                                            shape.columns, rows, width);
    double error = 0;
    double squares = 0;
    for (std::size_t r = row; r < row + rows; ++r) {
      for (std::size_t c = column; c < column + width; ++c) {
        const std::size_t i = r * shape.columns + c;
        const std::uint8_t pair = packed[i / 2];
        const double x =
            static_cast<double>(e2m1_to_float(i % 2 == 0 ? e2m1_even(pair) : e2m1_odd(pair))) *
            e8m0_to_float(groups[i / kFp4WeightGroup]);
        const double y =
            static_cast<double>(e4m3_to_float(out.bytes[i])) * e8m0_to_float(out.scales[block]);
        squares += x * x;
        error += (y - x) * (y - x);
        out.max_abs_error = std::max(out.max_abs_error, std::fabs(y - x));
      }
    }
    lossy.relative_error = squares == 0 ? 0 : std::sqrt(error / squares);
    out.error_squares += error;
    out.changed_elements += lossy.changed;
    out.lossy.push_back(lossy);
  }
}

}  // namespace cupel
