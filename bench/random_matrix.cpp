#include "random_matrix.h"

#include <cstdint>
#include <cstring>
#include <random>

#include "cupel/kernels/activation.h"

namespace cupel::bench {
namespace {

using Format = PackedMatrix::Format;

// Bytes that every format can take: no NaN and nothing huge.
const std::vector<std::byte>& master(Format format) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto make = [](Format of) {
    std::vector<std::byte> bytes(kBytes);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kBytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word = random();
      if (of == Format::kFp8) word &= 0xbfbfbfbfbfbfbfbfu;
      if (of == Format::kBf16) word = (word & 0x80ff80ff80ff80ffu) | 0x3f003f003f003f00u;
      if (of == Format::kF32) word = (word & 0x80ffffff80ffffffu) | 0x3f0000003f000000u;
      std::memcpy(bytes.data() + i, &word, sizeof word);
    }
    return bytes;
  };
  static const std::vector<std::byte> kMasters[] = {make(Format::kFp4), make(Format::kFp8),
                                                    make(Format::kBf16), make(Format::kF32)};
  return kMasters[static_cast<std::size_t>(format)];
}

}  // namespace

std::vector<Shape> flash_shapes() {
  return {{"expert w1, w3", Format::kFp4, 2048, 4096},
          {"expert w2", Format::kFp4, 4096, 2048},
          {"shared w1, w3", Format::kFp8, 2048, 4096},
          {"shared w2", Format::kFp8, 4096, 2048},
          {"wq_a, wo_a group", Format::kFp8, 1024, 4096},
          {"wq_b", Format::kFp8, 32768, 1024},
          {"wkv", Format::kFp8, 512, 4096},
          {"wo_b", Format::kFp8, 4096, 8192},
          {"indexer wq_b", Format::kFp8, 8192, 1024},
          {"compressor wkv", Format::kBf16, 1024, 4096},
          {"head, 1/8", Format::kBf16, 16160, 4096}};
}

PackedMatrix random_matrix(const Shape& shape, std::size_t seed) {
  const auto& bytes = master(shape.format);
  PackedMatrix m = PackedMatrix::zero(shape.format, shape.n, shape.k);
  const std::size_t panel_bytes = m.row_bytes() * PackedMatrix::kPanel;
  const std::size_t places = (bytes.size() - panel_bytes) / 64;
  std::mt19937_64 random(seed);
  for (std::size_t panel = 0; panel < m.panels(); ++panel) {
    m.pack_codes(panel, panel + 1, bytes.data() + random() % places * 64);
  }
  if (shape.format == Format::kFp4) {
    const std::vector<std::byte> scales(shape.n * (shape.k / PackedMatrix::kFp4Group),
                                        std::byte{120});
    m.pack_fp4_scales(0, m.panels(), scales.data());
  }
  if (shape.format == Format::kFp8) {
    constexpr std::size_t kBlock = PackedMatrix::kFp8Block;
    m.set_fp8_scales(std::vector<float>(
        (shape.n + kBlock - 1) / kBlock * ((shape.k + kBlock - 1) / kBlock), 0x1p-6f));
  }
  return m;
}

std::vector<PackedMatrix> random_matrices(const Shape& shape, std::size_t bytes) {
  std::vector<PackedMatrix> matrices;
  for (std::size_t held = 0; held < bytes; held += matrices.back().bytes()) {
    matrices.push_back(random_matrix(shape, matrices.size()));
  }
  return matrices;
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& v : values) v = distribution(random);
  return values;
}

std::vector<float> random_inputs(ThreadPool& pool, const Shape& shape, std::size_t rows) {
  std::vector<float> x = random_floats(rows * shape.k);
  if (shape.format == Format::kFp4 || shape.format == Format::kFp8) {
    quantise_activation(pool, {.in = x.data(), .out = x.data(), .rows = rows, .width = shape.k});
  }
  return x;
}

}  // namespace cupel::bench
