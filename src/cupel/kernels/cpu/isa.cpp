#include "cupel/kernels/isa.h"

#include <atomic>
#include <string>

#include <cpuid.h>
#include <hwy/targets.h>

#include "cupel/base/error.h"
#include "cupel/kernels/cpu/bf16_dots.h"

namespace cupel {
namespace {

// Asking the processor takes microseconds under a hypervisor, and every product asks.
bool detect_bf16_dots() {
  return (hwy::SupportedTargets() & HWY_AVX3) != 0 && has_bf16_dots();
}
std::atomic<bool>& bf16_dots() {
  static std::atomic<bool> in_use = detect_bf16_dots();
  return in_use;
}

}  // namespace

Isa parse_isa(std::string_view name) {
  if (name == "auto") return Isa::kAuto;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  if (name == "avx512-bf16") return Isa::kAvx512Bf16;
  throw InputError("--isa", "auto, avx2, avx512 or avx512-bf16", std::string(name));
}

void require_baseline_isa() {
  // Not every supported compiler has a name for F16C: bit 29 of ecx of leaf 1.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1u) != 0;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !f16c) {
    throw InputError("processor", "AVX2, FMA and F16C", "not all of them");
  }
}

void set_isa(Isa isa) {
  hwy::SetSupportedTargetsForTest(0);
  const std::int64_t supported = hwy::SupportedTargets();
  const bool avx512 = isa == Isa::kAvx512 || isa == Isa::kAvx512Bf16;
  if (avx512 && (supported & HWY_AVX3) == 0) {
    throw InputError("--isa", "an instruction set of this processor", "avx512");
  }
  if (isa == Isa::kAvx512Bf16 && !has_bf16_dots()) {
    throw InputError("--isa", "an instruction set of this processor", "avx512-bf16");
  }
  if (isa == Isa::kAvx2) hwy::SetSupportedTargetsForTest(HWY_AVX2);
  if (avx512) hwy::SetSupportedTargetsForTest(HWY_AVX3 | HWY_AVX2);
  hwy::GetChosenTarget().DeInit();
  bf16_dots() = (isa == Isa::kAuto || isa == Isa::kAvx512Bf16) && detect_bf16_dots();
}

bool uses_bf16_dots() {
  return bf16_dots().load(std::memory_order_relaxed);
}

std::string_view active_isa() {
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0) return "avx2";
  return uses_bf16_dots() ? "avx512-bf16" : "avx512";
}

}  // namespace cupel
