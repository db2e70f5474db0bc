// The matrix of the CPU's products: repacked, or in place as published.
//
// Logical: W [n, k] (out, in), row-major, as in the checkpoint. Packed: panels of 16 output rows;
// within a panel the 16 values of one input index stand together, so that one vector load serves 16
// outputs. Codes keep their stored width:
//   kFp4   [panel][k/8][16] words of 32 bits, four bits an index: bits 0-15 the odd indices, 16-31
//          the even ones, ascending, so that a shift brings a pair into the two halves;
//          scales [panel][k/32][16] E8M0 bytes
//   kFp8   [panel][k][16] e4m3 bytes; scales [panel][k/128] fp32 (blocks of 128 x 128)
//   kBf16  [panel][k][16]
//   kF32   [panel][k][16]
// Rows beyond n in the last panel are zero. In place: codes and FP4 scales as in the checkpoint, at
// any alignment; the kernel packs what it works on (panel_codes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cupel/kernels/aligned_buffer.h"
#include "cupel/kernels/matrix.h"

namespace cupel {

class PackedMatrix final : public Matrix {
 public:
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

  // All zero, to be filled by the functions below: the codes panel by panel, from any threads.
  static PackedMatrix zero(Format format, std::size_t n, std::size_t k);
  void pack_codes(std::size_t panel_begin, std::size_t panel_end, const std::byte* codes) override;
  void pack_fp4_scales(std::size_t panel_begin, std::size_t panel_end,
                       const std::byte* scales) override;
  void set_fp8_scales(std::span<const float> scales) override;

  // Bytes that must outlive the matrix: codes, and the scales of kFp4 (else nullptr), as for the
  // functions above with all panels. The scales of kFp8 are set apart.
  static PackedMatrix in_place(Format format, std::size_t n, std::size_t k, const std::byte* codes,
                               const std::byte* fp4_scales);

  // Bytes held, scales included; in place, what is held beside the published bytes.
  std::size_t bytes() const override;
  // Bytes of codes and scales, wherever they are.
  std::size_t stored_bytes() const;

  bool is_in_place() const { return in_place_codes_ != nullptr; }
  // Bytes of the unit that a panel interleaves: an element, or eight of kFp4.
  static std::size_t unit_bytes(Format format);
  // kFp4: the lowest bit of input index 8 i + s in its word.
  static constexpr std::size_t fp4_shift(std::size_t s) { return 4 * (s / 2) + (s % 2 ? 0 : 16); }
  // In place: the codes of an output row, and its FP4 scales.
  const std::byte* row_codes(std::size_t row) const { return in_place_codes_ + row * row_bytes(); }
  const std::byte* row_fp4_scales(std::size_t row) const {
    return in_place_scales_ + row * (k() / kFp4Group);
  }

  // Packed: codes of one panel, starting at input index k0 (a multiple of 8 for kFp4).
  const std::uint8_t* panel_codes(std::size_t panel, std::size_t k0) const {
    return codes_.data() + panel * panel_bytes() + panel_bytes() / k() * k0;
  }
  // kFp4, packed: the 16 E8M0 scales of the group that holds k0.
  const std::uint8_t* fp4_scales(std::size_t panel, std::size_t k0) const {
    return fp4_scales_.data() + (panel * (k() / kFp4Group) + k0 / kFp4Group) * kPanel;
  }
  // kFp8: the scale of the block that holds k0; those of the panel's further blocks follow.
  const float* fp8_scales(std::size_t panel, std::size_t k0) const {
    const std::size_t blocks = (k() + kFp8Block - 1) / kFp8Block;
    return fp8_scales_.data() + panel * blocks + k0 / kFp8Block;
  }

  // What is known of the scales. kModerate: all are powers of two in [2^-50, 2^60], so that for
  // inputs that are zero or in [2^-60, 2^40] no partial sum of a block leaves the normal range, and
  // scaling the block's sum gives the bits of scaling every weight. kExtreme: some FP8 scale is
  // 2^120 or more. Of FP4 in place nothing is known, for that would read them all: kModerate, and
  // who relies on it asks for the panels at hand.
  enum class Scales { kModerate, kOrdinary, kExtreme };
  Scales scales() const;
  // False if these panels' scales are those of FP4 in place and not moderate.
  bool are_moderate(std::size_t panel_begin, std::size_t panel_end) const;

 private:
  PackedMatrix(Format format, std::size_t n, std::size_t k);
  std::size_t panel_bytes() const { return row_bytes() * kPanel; }

  AlignedBuffer codes_;
  AlignedBuffer fp4_scales_;
  std::vector<float> fp8_scales_;
  bool immoderate_ = false;  // a scale outside kModerate's range was seen
  bool extreme_ = false;
  const std::byte* in_place_codes_ = nullptr;
  const std::byte* in_place_scales_ = nullptr;
};

}  // namespace cupel
