#include "cupel/load/workload.h"

#include <algorithm>
#include <set>

#include "support/expect_error.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(Workload, DependsOnItsSeedAlone) {
  const Workload w{.input_len = 50, .output_len = 20, .range_ratio = 0.3, .vocabulary = 1000};
  std::set<std::vector<std::int32_t>> prompts;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const LoadPrompt prompt = draw_prompt(w, seed);
    const LoadPrompt again = draw_prompt(w, seed);
    EXPECT_EQ(prompt.ids, again.ids);
    EXPECT_EQ(prompt.output_len, again.output_len);
    prompts.insert(prompt.ids);
  }
  EXPECT_EQ(prompts.size(), 100U);
}

TEST(Workload, LengthsCoverTheirRangeAndIdsTheirs) {
  const Workload w{.input_len = 10, .output_len = 4, .range_ratio = 0.5, .vocabulary = 7};
  std::set<std::size_t> inputs;
  std::set<int> outputs;
  std::set<std::int32_t> ids;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const LoadPrompt prompt = draw_prompt(w, seed);
    inputs.insert(prompt.ids.size());
    outputs.insert(prompt.output_len);
    ids.insert(prompt.ids.begin(), prompt.ids.end());
  }
  EXPECT_EQ(inputs, (std::set<std::size_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(outputs, (std::set<int>{2, 3, 4}));
  EXPECT_EQ(ids, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Workload, RatioOneIsExactAndRatioZeroBeginsWithOne) {
  std::set<std::size_t> inputs;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    EXPECT_EQ(draw_prompt({.input_len = 9, .output_len = 3, .vocabulary = 5}, seed).ids.size(), 9U);
    inputs.insert(
        draw_prompt({.input_len = 3, .output_len = 1, .range_ratio = 0, .vocabulary = 5}, seed)
            .ids.size());
  }
  EXPECT_EQ(inputs, (std::set<std::size_t>{1, 2, 3}));
}

TEST(Workload, WithoutAVocabularyLettersStandForTokens) {
  const LoadPrompt prompt = draw_prompt({.input_len = 40, .output_len = 1, .vocabulary = 0}, 3);
  EXPECT_TRUE(prompt.ids.empty());
  ASSERT_EQ(prompt.text.size(), 80U);
  for (std::size_t i = 0; i < 80; i += 2) {
    EXPECT_EQ(prompt.text[i], ' ');
    EXPECT_TRUE(prompt.text[i + 1] >= 'a' && prompt.text[i + 1] <= 'z');
  }
}

TEST(Workload, RefusesWhatIsNone) {
  using test::expect_input_error;
  expect_input_error([] { check_workload({.input_len = 0}); }, {"--input-len", "0"});
  expect_input_error([] { check_workload({.output_len = -1}); }, {"--output-len", "-1"});
  expect_input_error([] { check_workload({.range_ratio = 1.5}); }, {"--range-ratio", "1.5"});
  expect_input_error([] { check_workload({.vocabulary = -2}); }, {"--vocabulary", "-2"});
}

}  // namespace
}  // namespace cupel
