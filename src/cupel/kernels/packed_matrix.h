// A weight matrix repacked for the linear kernel.
//
// Logical: W [n, k] (out, in), row-major, as in the checkpoint. Packed: panels of 16 output rows;
// within a panel the 16 values of one input index stand together, so that one vector load serves 16
// outputs. Codes keep their stored width:
//   kFp4   [panel][k/2][16] bytes, low nibble = even k; scales [panel][k/32][16] E8M0 bytes
//   kFp8   [panel][k][16] e4m3 bytes; scales [panel][k/128] fp32 (blocks of 128 x 128)
//   kBf16  [panel][k][16]
//   kF32   [panel][k][16]
// Rows beyond n in the last panel are zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hwy/aligned_allocator.h>

namespace cupel {

class PackedMatrix {
 public:
  enum class Format { kFp4, kFp8, kBf16, kF32 };
  static constexpr std::size_t kPanel = 16;
  static constexpr std::size_t kFp4Group = 32;
  static constexpr std::size_t kFp8Block = 128;

  PackedMatrix() = default;

  // codes [n, k/2] (two e2m1 an element pair, low nibble first), scales [n, k/32] E8M0. k % 32 ==
  // 0.
  static PackedMatrix fp4(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                          std::span<const std::uint8_t> scales);
  // codes [n, k] e4m3 without NaN, scales [ceil(n/128), ceil(k/128)].
  static PackedMatrix fp8(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                          std::span<const float> scales);
  // values [n, k] bf16 bits.
  static PackedMatrix bf16(std::size_t n, std::size_t k, std::span<const std::uint16_t> values);
  static PackedMatrix f32(std::size_t n, std::size_t k, std::span<const float> values);

  Format format() const { return format_; }
  std::size_t n() const { return n_; }
  std::size_t k() const { return k_; }
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
  std::size_t panels() const { return (n_ + kPanel - 1) / kPanel; }
  // Bytes held, scales included.
  std::size_t bytes() const;

  // Codes of one panel, starting at input index k0 (even for kFp4).
  const std::uint8_t* panel_codes(std::size_t panel, std::size_t k0) const;
  // kFp4: the 16 E8M0 scales of the group that holds k0.
  const std::uint8_t* fp4_scales(std::size_t panel, std::size_t k0) const {
    return fp4_scales_.data() + (panel * (k_ / kFp4Group) + k0 / kFp4Group) * kPanel;
  }
  // kFp8: the scale of the block that holds k0.
  float fp8_scale(std::size_t panel, std::size_t k0) const {
    const std::size_t blocks = (k_ + kFp8Block - 1) / kFp8Block;
    return fp8_scales_[panel * blocks + k0 / kFp8Block];
  }

 private:
  PackedMatrix(Format format, std::size_t n, std::size_t k);
  std::size_t panel_bytes() const;

  Format format_ = Format::kF32;
  std::size_t n_ = 0;
  std::size_t k_ = 0;
  std::size_t codes_bytes_ = 0;
  hwy::AlignedFreeUniquePtr<std::uint8_t[]> codes_;
  std::vector<std::uint8_t> fp4_scales_;
  std::vector<float> fp8_scales_;
};

}  // namespace cupel
