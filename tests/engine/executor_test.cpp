// The seam for accelerators: another executor, with memory of its own, gives the same bits, and
// nothing above it has to change.
#include "cupel/kernels/executor.h"

#include "engine_support.h"
#include "support/expect_error.h"
#include "support/guarded_executor.h"
#include "support/same_bits.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::engine_options;
using test::generate;
using test::GuardedExecutor;
using test::make_guarded_backend;
using test::text_ids;

TEST(Executor, GuardedMemoryIsOutOfReachOfTheHost) {
  GuardedExecutor executor;
  const std::vector<float> values = {1, 2, 3};
  const DeviceArray<float> array(executor, values);
  EXPECT_EQ(array.device(), (Device{.type = "guarded"}));
  EXPECT_EQ(array.to_host(), values);
  EXPECT_EQ(array.clone().to_host(), values);
  EXPECT_DEATH(std::printf("%f", static_cast<double>(*array.data())), "");
}

TEST(Executor, ADeviceThatThereIsNotIsRefused) {
  test::expect_input_error([] { make_executor("abacus", 1); }, {"device", "cpu", "abacus"});
}

struct Setting {
  const char* name;
  NetworkOptions options;
};
void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

class Seam : public testing::TestWithParam<Setting> {};

// Prompts that complete windows of both ratios, one of them in chunks, and more than one request at
// once: prefill and decode, compressor, indexer, hash layers and routed ones, all weight formats.
TEST_P(Seam, AnotherExecutorGivesTheSameBits) {
  EngineOptions options = engine_options(GetParam().options.backend);
  options.network = GetParam().options;
  options.prefill_chunk = 60;
  const std::vector<GenerationRequest> requests = {
      {.prompt_ids = text_ids(0, 131), .max_new_tokens = 2, .top_logprobs = 3},
      {.prompt_ids = text_ids(200, 9), .max_new_tokens = 3, .top_logprobs = 3}};

  Engine cpu(options);
  auto guarded_executor = std::make_unique<GuardedExecutor>();
  GuardedExecutor& executor = *guarded_executor;
  Engine guarded(options, std::move(guarded_executor), make_guarded_backend);

  std::vector<std::vector<float>> logits[2];
  Engine* engines[] = {&cpu, &guarded};
  for (std::size_t e = 0; e < 2; ++e) {
    logits[e].resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      engines[e]->submit(requests[i], {.on_logits = [&, e, i](std::span<const float> row) {
                           logits[e][i].insert(logits[e][i].end(), row.begin(), row.end());
                         }});
    }
    while (engines[e]->step()) {
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_FALSE(logits[0][i].empty());
    EXPECT_TRUE(test::same_bits(logits[1][i], logits[0][i])) << "request " << i;
  }
  EXPECT_GT(executor.memory().bytes_in_use(), guarded.network().weight_bytes());
}

constexpr Setting kSettings[] = {
    {"reference", {.backend = BackendKind::kReference}},
    {"packed", {.backend = BackendKind::kPacked}},
    // It cannot read a map and packs instead.
    {"unified_map", {.backend = BackendKind::kUnified, .weights = WeightsForm::kMap}},
    {"unified_float32", {.backend = BackendKind::kUnified, .numerics = Numerics::kFloat32}},
};
INSTANTIATE_TEST_SUITE_P(Settings, Seam, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

// A NaN is traced to its layer on the device, too.
TEST(Executor, FaultsAreFoundOnTheDevice) {
  GuardedExecutor executor;
  const std::vector<float> values = {0, 1, INFINITY, 2, 3, NAN};
  const std::vector<std::int32_t> index = {2, 0, 1}, none = {-1, -1, -1};
  const DeviceArray<float> x(executor, values);
  const DeviceArray<std::int32_t> rows(executor, index);
  DeviceArray<std::int32_t> marks(executor, none);
  for (const std::int32_t mark : {4, 5}) {
    executor.mark_not_finite({.x = x.data(),
                              .index = rows.data(),
                              .rows = 3,
                              .width = 2,
                              .mark = mark,
                              .marks = marks.data()});
  }
  EXPECT_EQ(marks.to_host(), (std::vector<std::int32_t>{4, -1, 4}));
}

}  // namespace
}  // namespace cupel
