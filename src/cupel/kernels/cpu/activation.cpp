#include "cupel/kernels/activation.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "cupel/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cupel/kernels/cpu/activation.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

constexpr std::size_t kGroup = 128;

void quantise_row(const float* in, float* out, std::size_t width) {
  const FloatTag d;
  for (std::size_t begin = 0; begin < width; begin += kGroup) {
    const std::size_t count = std::min(kGroup, width - begin);
    const float* x = in + begin;
    // Bit patterns without sign order as the magnitudes do, NaN above infinity.
    auto top = std::bit_cast<std::uint32_t>(1e-4f);
    for (std::size_t i = 0; i < count; ++i) {
      top = std::max(top, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
    }
    const auto amax = std::bit_cast<float>(top);
    if (!(amax <= std::numeric_limits<float>::max())) {
      std::fill_n(out + begin, count, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    // The smallest power of two with amax / s <= 448, by the bit pattern of amax * (1/448).
    const auto bits = std::bit_cast<std::uint32_t>(amax * 0x1.24924ap-9f);
    const int e = static_cast<int>(bits >> 23) - 127 + ((bits & 0x7fffffu) != 0 ? 1 : 0);
    const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
    const float inverse = std::bit_cast<float>(static_cast<std::uint32_t>(127 - e) << 23);
    float* y = out + begin;
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      auto v = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse));
      v = hn::Min(hn::Max(v, hn::Set(d, -448.0f)), hn::Set(d, 448.0f));
      hn::StoreU(hn::Mul(round_e4m3_part(v), hn::Set(d, scale)), d, y + i);
    }
    if (i < count) {
      float tail[kLanes] = {};
      std::copy_n(x + i, count - i, tail);
      auto v = hn::Mul(hn::LoadU(d, tail), hn::Set(d, inverse));
      v = hn::Min(hn::Max(v, hn::Set(d, -448.0f)), hn::Set(d, 448.0f));
      hn::StoreU(hn::Mul(round_e4m3_part(v), hn::Set(d, scale)), d, tail);
      std::copy_n(tail, count - i, y + i);
    }
  }
}

void swiglu_row(const float* gate, const float* up, float weight, float* out, std::size_t width,
                float limit, bool round_bf16) {
  const FloatTag d;
  const auto one = hn::Set(d, 1.0f);
  const auto high = hn::Set(d, limit);
  const auto low = hn::Set(d, -limit);
  const auto body = [&](const float* g_in, const float* u_in, float* to) HWY_ATTR {
    // Of a NaN and a bound, x86 keeps the second operand: the value must stand there.
    const auto g = hn::Min(high, hn::LoadU(d, g_in));
    const auto u = hn::Min(high, hn::Max(low, hn::LoadU(d, u_in)));
    const auto silu = hn::Div(g, hn::Add(one, exp_part(hn::Neg(g))));
    auto h = hn::Mul(hn::Mul(silu, u), hn::Set(d, weight));
    if (round_bf16) h = round_bf16_part(h);
    hn::StoreU(h, d, to);
  };
  std::size_t i = 0;
  for (; i + kLanes <= width; i += kLanes) body(gate + i, up + i, out + i);
  if (i < width) {
    float g[kLanes] = {}, u[kLanes] = {}, h[kLanes];
    std::copy_n(gate + i, width - i, g);
    std::copy_n(up + i, width - i, u);
    body(g, u, h);
    std::copy_n(h, width - i, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(quantise_row);
HWY_EXPORT(swiglu_row);

void quantise_activation(ThreadPool& pool, const QuantiseActivationParams& p) {
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      HWY_DYNAMIC_DISPATCH(quantise_row)(p.in + r * p.width, p.out + r * p.width, p.width);
    }
  });
}

void swiglu(ThreadPool& pool, const SwigluParams& p) {
  parallel_rows(pool, p.rows, 32, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) {
      const std::size_t at = r * p.width;
      HWY_DYNAMIC_DISPATCH(swiglu_row)
      (p.gate + at, p.up + at, p.weight == nullptr ? 1.0f : p.weight[r], p.out + at, p.width,
       p.limit, p.round_bf16);
    }
  });
}

}  // namespace cupel
#endif  // HWY_ONCE
