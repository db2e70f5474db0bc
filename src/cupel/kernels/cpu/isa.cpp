#include "cupel/kernels/isa.h"

#include <string>

#include <cpuid.h>
#include <hwy/targets.h>

#include "cupel/base/error.h"

namespace cupel {

Isa parse_isa(std::string_view name) {
  if (name == "auto") return Isa::kAuto;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  throw InputError("--isa", "auto, avx2 or avx512", std::string(name));
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
  if (isa == Isa::kAvx512 && (supported & HWY_AVX3) == 0) {
    throw InputError("--isa", "an instruction set of this processor", "avx512");
  }
  if (isa == Isa::kAvx2) hwy::SetSupportedTargetsForTest(HWY_AVX2);
  if (isa == Isa::kAvx512) hwy::SetSupportedTargetsForTest(HWY_AVX3 | HWY_AVX2);
  hwy::GetChosenTarget().DeInit();
}

std::string_view active_isa() {
  return (hwy::SupportedTargets() & HWY_AVX3) != 0 ? "avx512" : "avx2";
}

}  // namespace cupel
