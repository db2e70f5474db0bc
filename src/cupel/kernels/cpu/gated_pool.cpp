#include "cupel/kernels/gated_pool.h"

#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/gated_pool.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

void gated_pool_kernel(const GatedPoolParams& p) {
  for (std::size_t c = 0; c < p.width; c += 16) {
    V16 top = set16(-std::numeric_limits<float>::infinity());
    for (const float* gate : p.gates) {
      if (gate != nullptr) top = max16(top, load16(gate + c));
    }
    V16 total = zero16();
    for (const float* gate : p.gates) {
      if (gate != nullptr) total = add16(total, exp16(sub16(load16(gate + c), top)));
    }
    V16 sum = zero16();
    for (std::size_t t = 0; t < p.gates.size(); ++t) {
      if (p.gates[t] == nullptr) continue;
      const V16 weight = div16(exp16(sub16(load16(p.gates[t] + c), top)), total);
      sum = fma16(weight, load16(p.values[t] + c), sum);
    }
    store16(sum, p.out + c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(gated_pool_kernel);

void gated_pool(const GatedPoolParams& params) {
  assert(params.width % 16 == 0 && params.values.size() == params.gates.size());
  HWY_DYNAMIC_DISPATCH(gated_pool_kernel)(params);
}

}  // namespace cupel
#endif  // HWY_ONCE
