// In float32 without any quantisation, the network agrees with an independent implementation
// (transformers, all float32) at every position.
#include <algorithm>
#include <cmath>

#include "support/golden.h"
#include <gtest/gtest.h>

#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

class GoldenFloat32 : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GoldenFloat32, LogitsOfEveryCase) {
  const auto [model, file] = GetParam();
  const test::Golden golden(file);
  CpuExecutor executor(2);
  const Checkpoint checkpoint(std::string(CUPEL_SOURCE_DIR "/models/") + model);
  Network network(checkpoint, {.backend = BackendKind::kReference, .numerics = Numerics::kFloat32},
                  executor);
  const auto vocab = static_cast<std::size_t>(network.config().vocab_size);
  std::size_t compared = 0;
  for (const std::string& name : golden.cases()) {
    const std::string prefix = "transformers_fp32/" + name;
    if (!golden.has(prefix + "/logits")) continue;
    const auto ids = golden.prompt(name);
    const auto expected = golden.get(prefix + "/logits");
    const auto argmax = golden.get(prefix + "/argmax");
    std::vector<std::size_t> rows(ids.size());
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = r;
    SequenceState state = network.open();
    const SegmentInput input{.state = &state, .ids = ids};
    const std::vector<float> logits = network.forward({&input, 1}, rows);
    network.close(state);

    for (std::size_t r = 0; r < ids.size(); ++r) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(r * vocab);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(vocab)) - row;
      EXPECT_EQ(best, argmax.ints[r]) << name << " position " << r;
    }
    float largest = 0;
    const std::size_t first = ids.size() - expected.rows();
    for (std::size_t i = 0; i < expected.floats.size(); ++i) {
      largest = std::max(largest, std::abs(logits[first * vocab + i] - expected.floats[i]));
    }
    EXPECT_LE(largest, 2e-4f) << name;
    RecordProperty("largest_" + name, std::to_string(largest));
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenFloat32,
                         testing::Values(std::pair("tiny-v4-preview", "preview.golden.safetensors"),
                                         std::pair("tiny-v4-0731", "official.golden.safetensors")),
                         [](const auto& param) {
                           return std::string(param.index == 0 ? "Preview" : "Official");
                         });

}  // namespace
}  // namespace cupel
