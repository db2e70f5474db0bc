#include "cupel/kernels/packed_matrix.h"

#include <cassert>
#include <cstring>

namespace cupel {

PackedMatrix::PackedMatrix(Format format, std::size_t n, std::size_t k)
    : format_(format), n_(n), k_(k), codes_bytes_(panels() * panel_bytes()) {
  codes_ = hwy::AllocateAligned<std::uint8_t>(codes_bytes_);
  std::memset(codes_.get(), 0, codes_bytes_);
}

std::size_t PackedMatrix::panel_bytes() const {
  switch (format_) {
    case Format::kFp4:
      return k_ / 2 * kPanel;
    case Format::kFp8:
      return k_ * kPanel;
    case Format::kBf16:
      return k_ * kPanel * sizeof(std::uint16_t);
    case Format::kF32:
      return k_ * kPanel * sizeof(float);
  }
  return 0;
}

std::size_t PackedMatrix::bytes() const {
  return codes_bytes_ + fp4_scales_.size() + fp8_scales_.size() * sizeof(float);
}

const std::uint8_t* PackedMatrix::panel_codes(std::size_t panel, std::size_t k0) const {
  return codes_.get() + panel * panel_bytes() + panel_bytes() / k_ * k0;
}

namespace {

// out[panel][i][lane] = in[panel * 16 + lane][i] for elements of type T.
template <typename T>
void transpose_panels(std::size_t n, std::size_t k, const T* in, std::uint8_t* out) {
  for (std::size_t row = 0; row < n; ++row) {
    const std::size_t panel = row / PackedMatrix::kPanel, lane = row % PackedMatrix::kPanel;
    std::uint8_t* to = out + (panel * k * PackedMatrix::kPanel + lane) * sizeof(T);
    for (std::size_t i = 0; i < k; ++i) {
      std::memcpy(to + i * PackedMatrix::kPanel * sizeof(T), in + row * k + i, sizeof(T));
    }
  }
}

}  // namespace

PackedMatrix PackedMatrix::fp4(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                               std::span<const std::uint8_t> scales) {
  assert(k % kFp4Group == 0 && codes.size() == n * k / 2 && scales.size() == n * k / kFp4Group);
  PackedMatrix m(Format::kFp4, n, k);
  transpose_panels(n, k / 2, codes.data(), m.codes_.get());
  // Padding rows have scale 2^0: their codes are zero.
  m.fp4_scales_.assign(m.panels() * (k / kFp4Group) * kPanel, 127);
  transpose_panels(n, k / kFp4Group, scales.data(), m.fp4_scales_.data());
  return m;
}

PackedMatrix PackedMatrix::fp8(std::size_t n, std::size_t k, std::span<const std::uint8_t> codes,
                               std::span<const float> scales) {
  const std::size_t blocks = (k + kFp8Block - 1) / kFp8Block;
  assert(codes.size() == n * k && scales.size() == (n + kFp8Block - 1) / kFp8Block * blocks);
  PackedMatrix m(Format::kFp8, n, k);
  transpose_panels(n, k, codes.data(), m.codes_.get());
  m.fp8_scales_.resize(m.panels() * blocks);
  for (std::size_t panel = 0; panel < m.panels(); ++panel) {
    const float* from = scales.data() + panel * kPanel / kFp8Block * blocks;
    std::memcpy(m.fp8_scales_.data() + panel * blocks, from, blocks * sizeof(float));
  }
  return m;
}

PackedMatrix PackedMatrix::bf16(std::size_t n, std::size_t k,
                                std::span<const std::uint16_t> values) {
  assert(values.size() == n * k);
  PackedMatrix m(Format::kBf16, n, k);
  transpose_panels(n, k, values.data(), m.codes_.get());
  return m;
}

PackedMatrix PackedMatrix::f32(std::size_t n, std::size_t k, std::span<const float> values) {
  assert(values.size() == n * k);
  PackedMatrix m(Format::kF32, n, k);
  transpose_panels(n, k, values.data(), m.codes_.get());
  return m;
}

}  // namespace cupel
