// The contract's test must fail where a reduction breaks the contract (broken_norm.cpp).
#include "engine/contract.h"
#include "engine/engine_support.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(BrokenContract, IsSeenByTheConditionsThatChangeShapes) {
  EngineOptions options = test::engine_options(BackendKind::kPacked);
  options.network.numerics = Numerics::kFloat32;
  const auto requests = test::contract_requests(6);
  const test::Bits expected = test::baseline(options, requests);
  for (const test::Condition& condition : test::conditions(options, requests, false)) {
    if (condition.name == "prefill chunk 1" || condition.name == "order and arrival 0" ||
        condition.name == "prefix-cache hits") {
      EXPECT_GT(test::differences(condition.run(), expected), 0U) << condition.name;
    }
  }
  // The same shape repeated shows nothing: why two tests guard the contract.
  EXPECT_EQ(test::differences(test::baseline(options, requests), expected), 0U);
}

}  // namespace
}  // namespace cupel
