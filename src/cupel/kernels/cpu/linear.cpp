#include "cupel/kernels/linear.h"

#include <algorithm>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/linear.cpp"
#include <hwy/foreach_target.h>

#include "cupel/formats/e4m3.h"
#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kPanel = PackedMatrix::kPanel;
constexpr std::size_t kBlock = 256;    // input indices decoded at a time: 16 KiB of fp32
constexpr std::size_t kRowBlock = 96;  // rows that share one decoding
// Rows a register tile holds: as many chains as hide the latency of the multiply-add.
constexpr std::size_t kTile = kParts == 1 ? 12 : 6;

// Decodes `count` input indices of one panel, from k0 on, into [count][16] fp32.
void decode_fp4(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                float* out) {
  const hn::CappedTag<std::uint8_t, 16> d8;
  // The upper byte of the IEEE half with the value of each code; the lower byte is zero.
  alignas(16) static constexpr std::uint8_t kHalfHigh[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42,
                                                             0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe,
                                                             0xc0, 0xc2, 0xc4, 0xc6};
  const auto table = hn::Load(d8, kHalfHigh);
  const hn::CappedTag<std::uint16_t, kLanes> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8_part;
  const hn::Rebind<hwy::float16_t, FloatTag> dh;
  const hn::Rebind<std::uint8_t, UintTag> d8_lanes;
  for (std::size_t group = 0; group < count; group += PackedMatrix::kFp4Group) {
    // 2^(byte - 127) as fp32: the byte is the exponent field, except 0, which is 2^-127.
    const std::uint8_t* scale_bytes = w.fp4_scales(panel, k0 + group);
    FloatVec scale[kParts];
    CUPEL_EACH_PART(i) {
      const auto e = hn::PromoteTo(UintTag(), hn::LoadU(d8_lanes, scale_bytes + i * kLanes));
      const auto bits = hn::IfThenElse(hn::Eq(e, hn::Zero(UintTag())),
                                       hn::Set(UintTag(), 0x00400000u), hn::ShiftLeft<23>(e));
      scale[i] = hn::BitCast(FloatTag(), bits);
    }
    const std::uint8_t* codes = w.panel_codes(panel, k0 + group);
    for (std::size_t pair = 0; pair < PackedMatrix::kFp4Group / 2; ++pair) {
      const auto bytes = hn::LoadU(d8, codes + pair * kPanel);
      const auto low = hn::And(bytes, hn::Set(d8, std::uint8_t{0x0f}));
      const auto high = hn::ShiftRight<4>(bytes);
      alignas(16) std::uint8_t halves[2][16];
      hn::Store(hn::TableLookupBytes(table, low), d8, halves[0]);
      hn::Store(hn::TableLookupBytes(table, high), d8, halves[1]);
      for (std::size_t parity = 0; parity < 2; ++parity) {
        float* to = out + (group + 2 * pair + parity) * kPanel;
        CUPEL_EACH_PART(i) {
          const auto wide = hn::PromoteTo(d16, hn::LoadU(d8_part, halves[parity] + i * kLanes));
          const auto half = hn::BitCast(dh, hn::ShiftLeft<8>(wide));
          hn::Store(hn::Mul(hn::PromoteTo(FloatTag(), half), scale[i]), FloatTag(),
                    to + i * kLanes);
        }
      }
    }
  }
}

void decode_fp8(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                float* out) {
  const std::uint8_t* codes = w.panel_codes(panel, k0);
  for (std::size_t begin = 0; begin < count; begin += PackedMatrix::kFp8Block) {
    const std::size_t end = std::min(count, begin + PackedMatrix::kFp8Block);
    const float block_scale = w.fp8_scale(panel, k0 + begin);
    if (block_scale >= 0x1p120f) {  // times 256 it would overflow, and make zeros NaN
      for (std::size_t i = begin * kPanel; i < end * kPanel; ++i) {
        out[i] = e4m3_to_float(codes[i]) * block_scale;
      }
      continue;
    }
    const V16 scale = set16(block_scale * 256.0f);
    for (std::size_t k = begin; k < end; ++k) {
      store16(decode_e4m3_16(codes + k * kPanel, scale), out + k * kPanel);
    }
  }
}

void decode_bf16(const PackedMatrix& w, std::size_t panel, std::size_t k0, std::size_t count,
                 float* out) {
  const auto* values = reinterpret_cast<const std::uint16_t*>(w.panel_codes(panel, k0));
  for (std::size_t k = 0; k < count; ++k) {
    store16(decode_bf16_16(values + k * kPanel), out + k * kPanel);
  }
}

// For `Rows` rows: acc[r] += (x[r, k0..k0+block) * b) for each block of [0, count) in turn.
template <std::size_t Rows>
HWY_INLINE void tile(const float* x, std::size_t x_stride, const float* b, std::size_t count,
                     std::size_t block, float* acc) {
  for (std::size_t k0 = 0; k0 < count; k0 += block) {
    const std::size_t end = std::min(count, k0 + block);
    V16 sum[Rows];
    for (std::size_t r = 0; r < Rows; ++r) sum[r] = zero16();
    for (std::size_t k = k0; k < end; ++k) {
      const V16 w = load16(b + k * kPanel);
      for (std::size_t r = 0; r < Rows; ++r) sum[r] = fma16(set16(x[r * x_stride + k]), w, sum[r]);
    }
    for (std::size_t r = 0; r < Rows; ++r) {
      store16(add16(load16(acc + r * kPanel), sum[r]), acc + r * kPanel);
    }
  }
}

template <std::size_t Rows>
void tail_tile(std::size_t rows, const float* x, std::size_t x_stride, const float* b,
               std::size_t count, std::size_t block, float* acc) {
  if constexpr (Rows > 0) {
    if (rows == Rows) {
      tile<Rows>(x, x_stride, b, count, block, acc);
    } else {
      tail_tile<Rows - 1>(rows, x, x_stride, b, count, block, acc);
    }
  }
}

// Rows [row0, row0 + rows) of one product against one panel.
void panel_product(const LinearParams& p, std::size_t panel, std::size_t row0, std::size_t rows) {
  HWY_ALIGN float decoded[kBlock * kPanel];
  HWY_ALIGN float acc[kRowBlock * kPanel];
  const PackedMatrix& w = *p.weight;
  const std::size_t block = w.sum_block();
  std::fill_n(acc, rows * kPanel, 0.0f);
  for (std::size_t k0 = 0; k0 < w.k(); k0 += kBlock) {
    const std::size_t count = std::min(kBlock, w.k() - k0);
    const float* b = decoded;
    switch (w.format()) {
      case PackedMatrix::Format::kFp4:
        decode_fp4(w, panel, k0, count, decoded);
        break;
      case PackedMatrix::Format::kFp8:
        decode_fp8(w, panel, k0, count, decoded);
        break;
      case PackedMatrix::Format::kBf16:
        decode_bf16(w, panel, k0, count, decoded);
        break;
      case PackedMatrix::Format::kF32:
        b = reinterpret_cast<const float*>(w.panel_codes(panel, k0));
        break;
    }
    const float* x = p.x + row0 * p.x_stride + k0;
    std::size_t r = 0;
    for (; r + kTile <= rows; r += kTile) {
      tile<kTile>(x + r * p.x_stride, p.x_stride, b, count, block, acc + r * kPanel);
    }
    tail_tile<kTile - 1>(rows - r, x + r * p.x_stride, p.x_stride, b, count, block,
                         acc + r * kPanel);
  }
  const std::size_t columns = std::min(kPanel, w.n() - panel * kPanel);
  for (std::size_t r = 0; r < rows; ++r) {
    float* from = acc + r * kPanel;
    float* to = p.out + (row0 + r) * p.out_stride + panel * kPanel;
    if (p.round_bf16) store16(round_bf16_16(load16(from)), from);
    std::copy_n(from, columns, to);
  }
}

void linear_unit(const LinearParams& p, std::size_t panel_begin, std::size_t panel_end,
                 std::size_t row0) {
  const std::size_t rows = std::min(kRowBlock, p.rows - row0);
  for (std::size_t panel = panel_begin; panel < panel_end; ++panel) {
    panel_product(p, panel, row0, rows);
  }
}

std::size_t rows_per_unit() {
  return kRowBlock;
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(linear_unit);
HWY_EXPORT(rows_per_unit);

namespace {

// A unit of work: a few panels against one block of rows.
struct Unit {
  const LinearParams* product;
  std::size_t panel_begin, panel_end, row0;
};

constexpr std::size_t kPanelsPerUnit = 4;

}  // namespace

void linear(ThreadPool& pool, std::span<const LinearParams> products) {
  const std::size_t row_block = HWY_DYNAMIC_DISPATCH(rows_per_unit)();
  std::vector<Unit> units;
  for (const LinearParams& p : products) {
    for (std::size_t row0 = 0; row0 < p.rows; row0 += row_block) {
      for (std::size_t panel = 0; panel < p.weight->panels(); panel += kPanelsPerUnit) {
        units.push_back({&p, panel, std::min(panel + kPanelsPerUnit, p.weight->panels()), row0});
      }
    }
  }
  pool.parallel_for(units.size(), [&](std::size_t i, int) {
    const Unit& u = units[i];
    HWY_DYNAMIC_DISPATCH(linear_unit)(*u.product, u.panel_begin, u.panel_end, u.row0);
  });
}

}  // namespace cupel
#endif  // HWY_ONCE
