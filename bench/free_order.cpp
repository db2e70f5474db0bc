#include "free_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../bench/free_order.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/panel_decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kSideBySide = 4;
constexpr std::size_t kAhead = 1024;

template <typename Format>
void free_panels(const PackedMatrix& w, std::size_t first, const float* x, float* out) {
  PanelCodes panels[kSideBySide];
  for (std::size_t p = 0; p < kSideBySide; ++p) {
    panels[p].codes = w.panel_codes(first + p, 0);
    if (w.format() == PackedMatrix::Format::kFp4) panels[p].fp4_scales = w.fp4_scales(first + p, 0);
    if (w.format() == PackedMatrix::Format::kFp8) panels[p].fp8_scales = w.fp8_scales(first + p, 0);
  }
  constexpr std::size_t kPair = Format::kStep == 1 ? 2 : Format::kStep;
  V16 sum[kSideBySide][2];
  for (auto& s : sum) s[0] = s[1] = zero16();
  for (std::size_t begin = 0; begin < w.k(); begin += Format::kBlock) {
    V16 scale[kSideBySide];
    for (std::size_t p = 0; p < kSideBySide; ++p) {
      scale[p] = set16(1.0f);
      if constexpr (Format::kScaled) scale[p] = Format::scale(panels[p], begin / Format::kBlock);
    }
    for (std::size_t k = begin; k < begin + Format::kBlock; k += kPair) {
      HWY_UNROLL(4)
      for (std::size_t p = 0; p < kSideBySide; ++p) {
        HWY_UNROLL(8)
        for (std::size_t s = 0; s < kPair; ++s) {
          const std::uint8_t* at = panels[p].codes + (k + s) / Format::kStep * Format::kStepBytes;
          if (s == 0) __builtin_prefetch(at + kAhead);
          V16 v = Format::at(Format::load(at), s % Format::kStep);
          if constexpr (Format::kScaled) v = mul16(v, scale[p]);
          sum[p][s % 2] = fma16(set16(x[k + s]), v, sum[p][s % 2]);
        }
      }
    }
  }
  for (std::size_t p = 0; p < kSideBySide; ++p) {
    store16(add16(sum[p][0], sum[p][1]), out + (first + p) * PackedMatrix::kPanel);
  }
}

void free_unit(const PackedMatrix& w, std::size_t first, const float* x, float* out) {
  switch (w.format()) {
    case PackedMatrix::Format::kFp4:
      return free_panels<Fp4>(w, first, x, out);
    case PackedMatrix::Format::kFp8:
      return free_panels<Fp8>(w, first, x, out);
    case PackedMatrix::Format::kBf16:
      return free_panels<Bf16>(w, first, x, out);
    case PackedMatrix::Format::kF32:
      return free_panels<F32>(w, first, x, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(free_unit);

namespace bench {

void free_order_product(ThreadPool& pool, const PackedMatrix& weight, const float* x, float* out) {
  pool.parallel_for(weight.panels() / 4, [&](std::size_t i, int) {
    HWY_DYNAMIC_DISPATCH(free_unit)(weight, 4 * i, x, out);
  });
}

}  // namespace bench
}  // namespace cupel
#endif  // HWY_ONCE
