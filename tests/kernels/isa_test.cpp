#include "cupel/kernels/isa.h"

#include "support/expect_error.h"
#include "support/isa_scope.h"
#include <gtest/gtest.h>

#include "cupel/kernels/numerics.h"

namespace cupel {
namespace {

TEST(Isa, NamesAreParsedOrRefused) {
  EXPECT_EQ(parse_isa("auto"), Isa::kAuto);
  EXPECT_EQ(parse_isa("avx2"), Isa::kAvx2);
  EXPECT_EQ(parse_isa("avx512"), Isa::kAvx512);
  EXPECT_EQ(parse_isa("avx512-bf16"), Isa::kAvx512Bf16);
  test::expect_input_error([] { parse_isa("AVX2"); }, {"--isa", "avx512", "AVX2"});
  EXPECT_NO_THROW(require_baseline_isa());
}

TEST(Isa, WhatIsSetIsActive) {
  const std::string_view automatic = active_isa();
  for (const Isa isa : test::available_isas()) {
    const test::IsaScope scope(isa);
    EXPECT_EQ(parse_isa(active_isa()), isa);
    EXPECT_EQ(uses_bf16_dots(), isa == Isa::kAvx512Bf16);
  }
  EXPECT_EQ(active_isa(), automatic);
  EXPECT_EQ(parse_isa(automatic), test::available_isas().back());
}

TEST(Numerics, NamesAreParsedOrRefused) {
  EXPECT_EQ(parse_numerics("reference"), Numerics::kReference);
  EXPECT_EQ(parse_numerics("float32"), Numerics::kFloat32);
  EXPECT_EQ(numerics_name(Numerics::kReference), "reference");
  EXPECT_EQ(numerics_name(Numerics::kFloat32), "float32");
  test::expect_input_error([] { parse_numerics("fp32"); }, {"--numerics", "float32", "fp32"});
}

}  // namespace
}  // namespace cupel
