#include "free_order.h"

#include "cupel/kernels/cpu/bf16_pairs.h"

HWY_PUSH_ATTRIBUTES(CUPEL_BF16_DOTS_TARGET)
namespace cupel::bench {
namespace {

template <typename Format>
void multiply(const PackedMatrix& w, std::size_t first, const std::uint32_t* pairs, float* out) {
  constexpr std::size_t kPanels = kFreeOrderPanels;
  const ReadAhead ahead(w.row_bytes() * PackedMatrix::kPanel, kPanels);
  const Format decode;
  PanelCodes panels[kPanels];
  __m512 total[kPanels];
  for (std::size_t p = 0; p < kPanels; ++p) {
    panels[p] = panel_at(w, first + p, 0, w.k(), p);
    total[p] = _mm512_setzero_ps();
  }
  for (std::size_t begin = 0; begin < w.k(); begin += Format::kBlock) {
    __m512 sum[kPanels][2];
    HWY_UNROLL(4)
    for (auto& s : sum) s[0] = s[1] = _mm512_setzero_ps();
    for (std::size_t k = begin; k < begin + Format::kBlock; k += Format::kStep) {
      const std::size_t at = k / Format::kStep * 64;
      ahead.ask<kPanels>(panels, at);
      HWY_UNROLL(4)
      for (std::size_t p = 0; p < kPanels; ++p) {
        __m512i v[Format::kStep / 2];
        decode(panels[p].codes + at, v);
        HWY_UNROLL(4)
        for (std::size_t i = 0; i < Format::kStep / 2; ++i) {
          sum[p][i % 2] = bf16_dots::add_dots(sum[p][i % 2], v[i], pairs[k / 2 + i]);
        }
      }
    }
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < kPanels; ++p) {
      total[p] = _mm512_fmadd_ps(_mm512_add_ps(sum[p][0], sum[p][1]),
                                 Format::scale(panels[p], begin / Format::kBlock), total[p]);
    }
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    _mm512_storeu_ps(out + (first + p) * PackedMatrix::kPanel, total[p]);
  }
}

}  // namespace
}  // namespace cupel::bench
HWY_POP_ATTRIBUTES

namespace cupel::bench {

void free_order_pairs(const PackedMatrix& weight, std::size_t first, const std::uint32_t* pairs,
                      float* out) {
  if (weight.format() == PackedMatrix::Format::kFp4) {
    multiply<bf16_dots::Fp4Pairs<InPlaceOrder::kPacked>>(weight, first, pairs, out);
  } else {
    multiply<bf16_dots::Fp8Pairs<InPlaceOrder::kPacked>>(weight, first, pairs, out);
  }
}

}  // namespace cupel::bench
