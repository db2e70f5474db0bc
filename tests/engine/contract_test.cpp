// CUPEL_CONTRACT_PROMPTS says how many prompts: few in every check, at least 64 in the long one.
#include "engine/contract.h"

#include "engine/engine_support.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

struct Cell {
  std::string model;
  const char* name;
  NetworkOptions network;
};

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << cell.model << " " << cell.name;
}

constexpr bool kLong = CUPEL_CONTRACT_PROMPTS >= 64;

class Contract : public testing::TestWithParam<Cell> {};

TEST_P(Contract, NoConditionChangesABit) {
  EngineOptions options;
  options.model = test::bundled(GetParam().model);
  options.network = GetParam().network;
  options.threads = 2;
  const auto requests = test::contract_requests(CUPEL_CONTRACT_PROMPTS);
  const test::Bits expected = test::baseline(options, requests);
  ASSERT_EQ(expected.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) ASSERT_FALSE(expected[i].empty());
  for (const test::Condition& condition : test::conditions(options, requests, kLong)) {
    EXPECT_EQ(test::differences(condition.run(), expected), 0U) << condition.name;
  }
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const char* model : {"tiny-v4-0731", "tiny-v4-preview"}) {
    if (!kLong && !all.empty()) {
      all.push_back({model, "unified", {.backend = BackendKind::kUnified}});
      break;
    }
    all.push_back({model, "reference", {.backend = BackendKind::kReference}});
    all.push_back({model, "packed", {.backend = BackendKind::kPacked}});
    all.push_back({model, "unified", {.backend = BackendKind::kUnified}});
  }
  if (!kLong) return all;
  all.push_back({"tiny-v4-0731",
                 "unified_fp8",
                 {.backend = BackendKind::kUnified, .kv_dtype = KvDtype::kFp8E4m3}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cells, Contract, testing::ValuesIn(cells()), [](const auto& info) {
  std::string name = info.param.model + "_" + info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace cupel
