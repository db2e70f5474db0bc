// Runs a part of a test on one instruction set.
#pragma once

#include <vector>

#include "cupel/base/error.h"
#include "cupel/kernels/isa.h"

namespace cupel::test {

class IsaScope {
 public:
  explicit IsaScope(Isa isa) { set_isa(isa); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;
  ~IsaScope() { set_isa(Isa::kAuto); }
};

// Those that this processor has; AVX2 at least.
inline std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    try {
      const IsaScope scope(isa);
      isas.push_back(isa);
    } catch (const InputError&) {
      continue;
    }
  }
  return isas;
}

}  // namespace cupel::test
