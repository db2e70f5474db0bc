// Every backend, free-running, against the published reference network: a statistical comparison of
// the next-token distributions over all cases, prompt and decode rows (the README of tests/golden
// says how close two correct programs come).
#include <algorithm>
#include <cmath>
#include <set>

#include "support/golden.h"
#include <gtest/gtest.h>

#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const auto log_normaliser = [](std::span<const float> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(v - top);
    return top + std::log(sum);
  };
  const double p_norm = log_normaliser(p_logits), q_norm = log_normaliser(q_logits);
  double kl = 0;
  for (std::size_t i = 0; i < p_logits.size(); ++i) {
    const double log_p = p_logits[i] - p_norm;
    kl += std::exp(log_p) * (log_p - (q_logits[i] - q_norm));
  }
  return kl;
}

struct Model {
  const char* name;
  const char* goldens;
};

class GoldenFreeRunning : public testing::TestWithParam<std::tuple<Model, BackendKind>> {};

TEST_P(GoldenFreeRunning, DistributionsOfAllCases) {
  const auto& [model, backend] = GetParam();
  const test::Golden golden(model.goldens);
  CpuExecutor executor(2);
  const Checkpoint checkpoint(std::string(CUPEL_SOURCE_DIR "/models/") + model.name);
  Network network(checkpoint, {.backend = backend}, executor);
  const auto vocab = static_cast<std::size_t>(network.config().vocab_size);

  std::vector<double> divergences;
  for (const std::string& name : golden.cases()) {
    if (!golden.has(name + "/logits")) continue;
    const auto expected = golden.get(name + "/logits");
    const auto greedy = golden.get(name + "/greedy_ids").ints;
    const auto prompt = golden.prompt(name);
    SequenceState state = network.open();
    for (std::size_t r = 0; r < expected.rows(); ++r) {
      const std::span<const std::int32_t> ids =
          r == 0 ? std::span<const std::int32_t>(prompt) : std::span(&greedy[r - 1], 1);
      const SegmentInput input{.state = &state, .ids = ids};
      const std::size_t last[] = {ids.size() - 1};
      const auto logits = network.forward({&input, 1}, last);
      const auto theirs = std::span(expected.floats).subspan(r * vocab, vocab);
      divergences.push_back(kl_divergence(theirs, logits));

      std::vector<float> sorted(theirs.begin(), theirs.end());
      std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
      if (sorted[0] - sorted[1] > 0.1f) {
        EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
                  std::max_element(theirs.begin(), theirs.end()) - theirs.begin())
            << name << " row " << r;
      }
    }
    network.close(state);
  }
  ASSERT_GT(divergences.size(), 100u);
  std::sort(divergences.begin(), divergences.end());
  const auto quantile = [&](double q) {
    return divergences[static_cast<std::size_t>(q * static_cast<double>(divergences.size() - 1))];
  };
  EXPECT_LE(quantile(0.5), 1e-6);
  EXPECT_LE(quantile(0.95), 3e-4);
  EXPECT_LE(quantile(1), 2e-2);
  RecordProperty("rows", std::to_string(divergences.size()));
  for (const double q : {0.5, 0.95, 1.0}) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2e", quantile(q));
    RecordProperty("q" + std::to_string(static_cast<int>(100 * q)), text);
  }
}

constexpr Model kModels[] = {{"tiny-v4-preview", "preview.golden.safetensors"},
                             {"tiny-v4-0731", "official.golden.safetensors"}};

INSTANTIATE_TEST_SUITE_P(Backends, GoldenFreeRunning,
                         testing::Combine(testing::ValuesIn(kModels),
                                          testing::Values(BackendKind::kReference,
                                                          BackendKind::kPacked,
                                                          BackendKind::kUnified)),
                         [](const auto& info) {
                           const bool preview = std::get<0>(info.param).name == kModels[0].name;
                           return std::string(preview ? "preview_" : "official_") +
                                  std::string(backend_name(std::get<1>(info.param)));
                         });

// What the indexer of `reference` chooses, free-running, against the goldens' choice.
class GoldenIndexer : public testing::TestWithParam<Model> {};

TEST_P(GoldenIndexer, ChoosesTheSameEntries) {
  const Model model = GetParam();
  const test::Golden golden(model.goldens);
  CpuExecutor executor(2);
  const Checkpoint checkpoint(std::string(CUPEL_SOURCE_DIR "/models/") + model.name);
  Network network(checkpoint, {.backend = BackendKind::kReference}, executor);
  const auto topk = static_cast<std::size_t>(network.config().index_topk);
  double overlap = 0;
  std::size_t rows = 0;
  for (const char* name : {"len0513", "fewshot"}) {
    const auto prompt = golden.prompt(name);
    StepTaps taps;
    taps.selection = [&](int layer, std::span<const std::int32_t> chosen) {
      const auto theirs =
          golden.get(std::string(name) + "/layer" + std::to_string(layer) + "_topk");
      const std::size_t width = theirs.ints.size() / theirs.rows();
      for (std::size_t r = 0; r < theirs.rows(); ++r) {
        const std::size_t position = prompt.size() - theirs.rows() + r;
        if ((position + 1) / 4 <= topk) continue;
        const auto mine = chosen.subspan(position * topk, topk);
        const std::set<std::int32_t> ours(mine.begin(), mine.end());
        std::size_t common = 0;
        for (std::size_t i = 0; i < width; ++i) common += ours.count(theirs.ints[r * width + i]);
        overlap += static_cast<double>(common) / static_cast<double>(topk);
        ++rows;
      }
    };
    SequenceState state = network.open();
    const SegmentInput input{.state = &state, .ids = prompt};
    network.forward({&input, 1}, {}, &taps);
    network.close(state);
  }
  ASSERT_GT(rows, 500u);
  EXPECT_GE(overlap / static_cast<double>(rows), 0.95);
  RecordProperty("overlap", std::to_string(overlap / static_cast<double>(rows)));
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenIndexer, testing::ValuesIn(kModels), [](const auto& info) {
  return std::string(info.index == 0 ? "preview" : "official");
});

}  // namespace
}  // namespace cupel
