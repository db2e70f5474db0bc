#include "cupel/kernels/cpu/packed_matrix.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>

#include "cupel/formats/e8m0.h"
#include "cupel/kernels/cpu/pack_rows.h"

namespace cupel {
namespace {

using Format = PackedMatrix::Format;

constexpr int kLowestModerate = -50;
constexpr int kHighestModerate = 60;
constexpr float kExtremeFp8Scale = 0x1p120f;

bool moderate(float scale) {
  return scale >= std::bit_cast<float>((kLowestModerate + 127) << 23) &&
         scale <= std::bit_cast<float>((kHighestModerate + 127) << 23) &&
         e8m0_from_float(scale).has_value();
}

bool moderate(std::span<const std::byte> e8m0) {
  constexpr int kLowest = kE8m0Bias + kLowestModerate, kRange = kHighestModerate - kLowestModerate;
  bool outside = false;  // all of them: without a branch it is one instruction for many
  for (const std::byte b : e8m0) {
    outside |= static_cast<std::uint8_t>(std::to_integer<int>(b) - kLowest) > kRange;
  }
  return !outside;
}

}  // namespace

std::size_t PackedMatrix::unit_bytes(Format format) {
  switch (format) {
    case Format::kFp8:
      return 1;
    case Format::kBf16:
      return 2;
    case Format::kFp4:
    case Format::kF32:
      break;
  }
  return 4;
}

PackedMatrix::PackedMatrix(Format format, std::size_t n, std::size_t k) : Matrix(format, n, k) {}

PackedMatrix PackedMatrix::zero(Format format, std::size_t n, std::size_t k) {
  assert(format != Format::kFp4 || k % kFp4Group == 0);
  PackedMatrix m(format, n, k);
  m.codes_ = AlignedBuffer(m.panels() * m.panel_bytes());
  if (format == Format::kFp4) {
    m.fp4_scales_ = AlignedBuffer(m.panels() * (k / kFp4Group) * kPanel);
  }
  return m;
}

void PackedMatrix::pack_codes(std::size_t panel_begin, std::size_t panel_end,
                              const std::byte* codes) {
  for (std::size_t panel = panel_begin; panel < panel_end; ++panel) {
    std::uint8_t* to = codes_.data() + panel * panel_bytes();
    pack_rows(codes + (panel - panel_begin) * kPanel * row_bytes(), row_bytes(),
              std::min(kPanel, n() - panel * kPanel), row_bytes(), unit_bytes(format()), to);
    if (format() == Format::kFp4) pair_fp4_words(to, panel_bytes());
  }
}

void PackedMatrix::pack_fp4_scales(std::size_t panel_begin, std::size_t panel_end,
                                   const std::byte* scales) {
  const std::size_t groups = k() / kFp4Group;
  for (std::size_t panel = panel_begin; panel < panel_end; ++panel) {
    const std::size_t rows = std::min(kPanel, n() - panel * kPanel);
    const std::byte* from = scales + (panel - panel_begin) * kPanel * groups;
    pack_rows(from, groups, rows, groups, 1, fp4_scales_.data() + panel * groups * kPanel);
    if (!moderate(std::span(from, rows * groups))) std::atomic_ref(immoderate_).store(true);
  }
}

void PackedMatrix::set_fp8_scales(std::span<const float> scales) {
  const std::size_t blocks = (k() + kFp8Block - 1) / kFp8Block;
  assert(scales.size() == (n() + kFp8Block - 1) / kFp8Block * blocks);
  fp8_scales_.resize(panels() * blocks);
  for (std::size_t panel = 0; panel < panels(); ++panel) {
    const float* from = scales.data() + panel * kPanel / kFp8Block * blocks;
    std::memcpy(fp8_scales_.data() + panel * blocks, from, blocks * sizeof(float));
  }
  for (const float scale : scales) {
    immoderate_ |= !moderate(scale);
    extreme_ |= !(scale < kExtremeFp8Scale);
  }
}

PackedMatrix PackedMatrix::in_place(Format format, std::size_t n, std::size_t k,
                                    const std::byte* codes, const std::byte* fp4_scales) {
  PackedMatrix m(format, n, k);
  m.in_place_codes_ = codes;
  m.in_place_scales_ = fp4_scales;
  return m;
}

PackedMatrix::Scales PackedMatrix::scales() const {
  if (extreme_) return Scales::kExtreme;
  return immoderate_ ? Scales::kOrdinary : Scales::kModerate;
}

bool PackedMatrix::are_moderate(std::size_t panel_begin, std::size_t panel_end) const {
  if (!is_in_place() || format() != Format::kFp4) return true;
  const std::size_t first = panel_begin * kPanel, last = std::min(n(), panel_end * kPanel);
  return moderate(std::span(row_fp4_scales(first), (last - first) * (k() / kFp4Group)));
}

std::size_t PackedMatrix::bytes() const {
  return codes_.size() + fp4_scales_.size() + fp8_scales_.size() * sizeof(float);
}

std::size_t PackedMatrix::stored_bytes() const {
  const std::size_t scales = format() == Format::kFp4 ? k() / kFp4Group : 0;
  return n() * (row_bytes() + scales) + fp8_scales_.size() * sizeof(float);
}

PackedMatrix PackedMatrix::fp4(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                               std::span<const std::uint8_t> scales) {
  assert(codes.size() == n * k / 2 && scales.size() == n * k / kFp4Group);
  PackedMatrix m = zero(Format::kFp4, n, k);
  m.pack_codes(0, m.panels(), std::as_bytes(codes).data());
  m.pack_fp4_scales(0, m.panels(), std::as_bytes(scales).data());
  return m;
}

PackedMatrix PackedMatrix::fp8(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                               std::span<const float> scales) {
  assert(codes.size() == n * k);
  PackedMatrix m = zero(Format::kFp8, n, k);
  m.pack_codes(0, m.panels(), std::as_bytes(codes).data());
  m.set_fp8_scales(scales);
  return m;
}

PackedMatrix PackedMatrix::bf16(std::size_t n, std::size_t k,
                                std::span<const std::uint16_t> values) {
  assert(values.size() == n * k);
  PackedMatrix m = zero(Format::kBf16, n, k);
  m.pack_codes(0, m.panels(), std::as_bytes(values).data());
  return m;
}

PackedMatrix PackedMatrix::f32(std::size_t n, std::size_t k, std::span<const float> values) {
  assert(values.size() == n * k);
  PackedMatrix m = zero(Format::kF32, n, k);
  m.pack_codes(0, m.panels(), std::as_bytes(values).data());
  return m;
}

}  // namespace cupel
