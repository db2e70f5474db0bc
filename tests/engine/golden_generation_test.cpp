// Greedy generation against the continuations that the published reference network gives.
#include <algorithm>
#include <functional>

#include "engine/engine_support.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::Golden;

struct Model {
  const char* name;
  const char* golden;
};

void PrintTo(const Model& model, std::ostream* out) {
  *out << model.name;
}

class GoldenGeneration : public testing::TestWithParam<Model> {};

TEST_P(GoldenGeneration, GreedyIdsAreTheGoldenOnes) {
  EngineOptions options = test::engine_options(BackendKind::kReference);
  options.model = test::bundled(GetParam().name);
  Engine engine(options);
  const Golden golden(GetParam().golden);
  // To the blank line that ends the answer.
  const auto expected = golden.get("fewshot/greedy_ids").ints;
  ASSERT_EQ(expected.size(), 66U);
  const Generation g =
      test::generate_alone(engine, {.prompt_ids = golden.prompt("fewshot"), .stop = {"\n\n"}});
  EXPECT_EQ(g.output_ids, expected);
  EXPECT_EQ(g.finish, FinishReason::kStopString);
  EXPECT_TRUE(g.text.ends_with("\n#### 887")) << g.text;
}

// The difference of the two largest golden logits that a step was chosen by.
float golden_margin(const test::GoldenTensor& logits, std::size_t step, std::size_t tokens) {
  const auto row = logits.floats.begin() + static_cast<std::ptrdiff_t>(step * logits.width());
  std::vector<float> sorted(row, row + static_cast<std::ptrdiff_t>(tokens));
  std::ranges::sort(sorted, std::greater<>());
  return sorted[0] - sorted[1];
}

// All cases at once, each up to the first step that the two programs decide differently: only a
// margin of at most 0.1 may be decided so.
TEST_P(GoldenGeneration, EveryCaseAsOneBatch) {
  EngineOptions options = test::engine_options(BackendKind::kReference);
  options.model = test::bundled(GetParam().name);
  Engine engine(options);
  const Golden golden(GetParam().golden);
  std::vector<std::string> names;
  std::vector<GenerationRequest> requests;
  for (const std::string& name : golden.cases()) {
    if (name == "fewshot") continue;
    names.push_back(name);
    requests.push_back({.prompt_ids = golden.prompt(name), .max_new_tokens = 12});
  }
  ASSERT_EQ(names.size(), 23U);
  const auto results = test::generate(engine, requests, 0);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto expected = golden.get(names[i] + "/greedy_ids").ints;
    const auto logits = golden.get(names[i] + "/logits");
    const auto& found = results[i].output_ids;
    ASSERT_EQ(found.size(), expected.size());
    const auto steps =
        static_cast<std::size_t>(std::ranges::mismatch(found, expected).in1 - found.begin());
    equal += steps;
    if (steps == expected.size()) continue;
    EXPECT_LE(golden_margin(logits, steps, 639), 0.1F) << names[i] << " step " << steps;
  }
  EXPECT_GE(equal, 230U);  // of 276
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenGeneration,
                         testing::Values(Model{"tiny-v4-preview", "preview.golden.safetensors"},
                                         Model{"tiny-v4-0731", "official.golden.safetensors"}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "preview" : "official");
                         });

}  // namespace
}  // namespace cupel
