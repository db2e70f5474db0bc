// A weight matrix where an executor's products read it, in whatever form they read fastest.
//
// It is filled from the published bytes (spec section 2.1), in parts of 16 output rows ("panels"),
// so that no tensor has to be held twice.
#pragma once

#include <cstddef>
#include <span>

namespace cupel {

class Matrix {
 public:
  enum class Format { kFp4, kFp8, kBf16, kF32 };
  static constexpr std::size_t kPanel = 16;
  static constexpr std::size_t kFp4Group = 32;
  static constexpr std::size_t kFp8Block = 128;

  virtual ~Matrix() = default;

  Format format() const { return format_; }
  std::size_t n() const { return n_; }  // outputs
  std::size_t k() const { return k_; }  // inputs
  std::size_t panels() const { return (n_ + kPanel - 1) / kPanel; }
  // Published bytes of the codes of one output row.
  std::size_t row_bytes() const { return row_bytes(format_, k_); }
  static constexpr std::size_t row_bytes(Format format, std::size_t k) {
    switch (format) {
      case Format::kFp4:
        return k / 2;
      case Format::kFp8:
        return k;
      case Format::kBf16:
        return 2 * k;
      case Format::kF32:
        break;
    }
    return 4 * k;
  }
  // How many input indices a product sums before it adds the sum to the total: the K block of the
  // published kernels for quantised weights; 64 for the others, which keeps the fp32 error near
  // that of a pairwise sum.
  std::size_t sum_block() const {
    switch (format_) {
      case Format::kFp4:
        return kFp4Group;
      case Format::kFp8:
        return kFp8Block;
      case Format::kBf16:
      case Format::kF32:
        break;
    }
    return 64;
  }

  // Codes of output rows [panel_begin * 16, min(n, panel_end * 16)), row-major. Different panels
  // may be filled from several threads at once.
  virtual void pack_codes(std::size_t panel_begin, std::size_t panel_end,
                          const std::byte* codes) = 0;
  // kFp4: the same rows' scales [rows, k/32] E8M0.
  virtual void pack_fp4_scales(std::size_t panel_begin, std::size_t panel_end,
                               const std::byte* scales) = 0;
  // kFp8: [ceil(n/128), ceil(k/128)], of all rows.
  virtual void set_fp8_scales(std::span<const float> scales) = 0;

  // Bytes held of the device's memory; of published bytes used where they are, none.
  virtual std::size_t bytes() const = 0;

 protected:
  Matrix() = default;
  Matrix(Format format, std::size_t n, std::size_t k) : format_(format), n_(n), k_(k) {}
  Matrix(Matrix&&) = default;
  Matrix& operator=(Matrix&&) = default;

 private:
  Format format_ = Format::kF32;
  std::size_t n_ = 0;
  std::size_t k_ = 0;
};

}  // namespace cupel
