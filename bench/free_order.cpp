#include "free_order.h"

#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../bench/free_order.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/bf16_dots.h"
#include "cupel/kernels/cpu/panel_decode-inl.h"
#include "cupel/kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

template <typename Format>
void free_panels(const PackedMatrix& w, std::size_t first, const float* x, float* out) {
  static_assert(Format::kStep == 1);
  constexpr std::size_t kPanels = bench::kFreeOrderPanels;
  constexpr std::size_t kLineDepth = 64 / Format::kStepBytes;
  const ReadAhead ahead(w.row_bytes() * PackedMatrix::kPanel, kPanels);
  PanelCodes panels[kPanels];
  V16 total[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    panels[p] = panel_at(w, first + p, 0, w.k(), p);
    total[p] = zero16();
  }
  const std::size_t block = Format::kScaled ? Format::kBlock : w.k();
  for (std::size_t begin = 0; begin < w.k(); begin += block) {
    V16 sum[kPanels][2];
    HWY_UNROLL(4)
    for (auto& s : sum) s[0] = s[1] = zero16();
    for (std::size_t k = begin; k < begin + block; k += kLineDepth) {
      ahead.ask<kPanels>(panels, k * Format::kStepBytes);
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kLineDepth; ++i) {
        const V16 value = set16(x[k + i]);
        HWY_UNROLL(4)
        for (std::size_t p = 0; p < kPanels; ++p) {
          const V16 weight = Format::at(panels[p].codes + (k + i) * Format::kStepBytes, 0);
          sum[p][i % 2] = fma16(value, weight, sum[p][i % 2]);
        }
      }
    }
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < kPanels; ++p) {
      const V16 both = add16(sum[p][0], sum[p][1]);
      if constexpr (Format::kScaled) {
        total[p] = fma16(both, Format::scale(panels[p], begin / Format::kBlock), total[p]);
      } else {
        total[p] = both;
      }
    }
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    store16(total[p], out + (first + p) * PackedMatrix::kPanel);
  }
}

void free_unit(const PackedMatrix& w, std::size_t first, const float* x, float* out) {
  if (w.format() == PackedMatrix::Format::kFp8) return free_panels<Fp8>(w, first, x, out);
  free_panels<Bf16>(w, first, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(free_unit);

namespace bench {

bool has_free_order(PackedMatrix::Format format) {
  if (format == PackedMatrix::Format::kFp4) return uses_bf16_dots();
  return format == PackedMatrix::Format::kFp8 || format == PackedMatrix::Format::kBf16;
}

void free_order_product(ThreadPool& pool, const PackedMatrix& weight, const float* x, float* out) {
  const bool dots = uses_bf16_dots() && weight.format() != PackedMatrix::Format::kBf16;
  static std::vector<std::uint32_t> pairs;
  if (dots) {
    pairs.resize(weight.k() / 2);
    bf16_pairs(x, weight.k(), 1, weight.k(), pairs.data());
  }
  pool.parallel_for(weight.panels() / kFreeOrderPanels, [&](std::size_t i, int) {
    const std::size_t first = i * kFreeOrderPanels;
    if (dots) return free_order_pairs(weight, first, pairs.data(), out);
    HWY_DYNAMIC_DISPATCH(free_unit)(weight, first, x, out);
  });
}

}  // namespace bench
}  // namespace cupel
#endif  // HWY_ONCE
