#include "kernels/vector_probe.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector_probe.cpp"
#include <hwy/foreach_target.h>

#include "cupel/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cupel {
namespace HWY_NAMESPACE {

void probe_exp(const float* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) store16(exp16(load16(in + i)), out + i);
}
void probe_round_bf16(const float* in, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) store16(round_bf16_16(load16(in + i)), out + i);
}
void probe_round_e4m3(const float* in, float* out, std::size_t count) {
  const FloatTag d;
  for (std::size_t i = 0; i < count; i += kLanes) {
    hn::StoreU(round_e4m3_part(hn::LoadU(d, in + i)), d, out + i);
  }
}
void probe_decode_e4m3(const std::uint8_t* codes, float scale, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    store16(decode_e4m3_16(codes + i, set16(scale * 256.0f)), out + i);
  }
}
void probe_decode_bf16(const std::uint16_t* bits, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) store16(decode_bf16_16(bits + i), out + i);
}
float probe_sum(const float* x) {
  return sum16(load16(x));
}
void probe_sum_four(const float* x, float* out) {
  hn::StoreU(sum16x4(load16(x), load16(x + 16), load16(x + 32), load16(x + 48)), Float4Tag(), out);
}

}  // namespace HWY_NAMESPACE
}  // namespace cupel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cupel {

HWY_EXPORT(probe_exp);
HWY_EXPORT(probe_round_bf16);
HWY_EXPORT(probe_round_e4m3);
HWY_EXPORT(probe_decode_e4m3);
HWY_EXPORT(probe_decode_bf16);
HWY_EXPORT(probe_sum);
HWY_EXPORT(probe_sum_four);

namespace test {

void vector_exp(const float* in, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(probe_exp)(in, out, count);
}
void vector_round_bf16(const float* in, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(probe_round_bf16)(in, out, count);
}
void vector_round_e4m3(const float* in, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(probe_round_e4m3)(in, out, count);
}
void vector_decode_e4m3(const std::uint8_t* codes, float scale, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(probe_decode_e4m3)(codes, scale, out, count);
}
void vector_decode_bf16(const std::uint16_t* bits, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(probe_decode_bf16)(bits, out, count);
}
float vector_sum(const float* x) {
  return HWY_DYNAMIC_DISPATCH(probe_sum)(x);
}
void vector_sum_four(const float* x, float* out) {
  HWY_DYNAMIC_DISPATCH(probe_sum_four)(x, out);
}

}  // namespace test
}  // namespace cupel
#endif  // HWY_ONCE
