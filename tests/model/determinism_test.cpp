// The determinism contract within one sequence and one step: a result does not depend on how a
// prompt is cut, on company in the step, on the number of threads or on the instruction set.
#include <cstring>
#include <map>

#include "support/golden.h"
#include <gtest/gtest.h>

#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/kernels/isa.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

struct Setting {
  const char* name;
  NetworkOptions options;
};

const Setting kSettings[] = {
    {"reference", {.backend = BackendKind::kReference}},
    {"packed", {.backend = BackendKind::kPacked}},
    {"unified_bf16", {.backend = BackendKind::kUnified}},
    {"unified_fp8", {.backend = BackendKind::kUnified, .kv_dtype = KvDtype::kFp8E4m3}},
    {"reference_float32", {.backend = BackendKind::kReference, .numerics = Numerics::kFloat32}},
    {"packed_float32", {.backend = BackendKind::kPacked, .numerics = Numerics::kFloat32}},
    {"unified_float32", {.backend = BackendKind::kUnified, .numerics = Numerics::kFloat32}},
};

class Determinism : public testing::TestWithParam<Setting> {
 protected:
  Determinism()
      : checkpoint_(CUPEL_SOURCE_DIR "/models/tiny-v4-0731"),
        ids_(test::Golden("official.golden.safetensors").get("text_ids").ints) {}

  std::unique_ptr<Network> network(Executor& executor) const {
    return std::make_unique<Network>(checkpoint_, GetParam().options, executor);
  }

  // Logits of every row of the prompt, fed in chunks; 0 = whole.
  static std::vector<float> prompt_logits(Network& network, std::span<const std::int32_t> prompt,
                                          std::size_t chunk) {
    SequenceState state = network.open();
    std::vector<float> all;
    if (chunk == 0) chunk = prompt.size();
    for (std::size_t at = 0; at < prompt.size(); at += chunk) {
      const std::size_t count = std::min(chunk, prompt.size() - at);
      std::vector<std::size_t> rows(count);
      for (std::size_t r = 0; r < count; ++r) rows[r] = r;
      const SegmentInput input{.state = &state, .ids = prompt.subspan(at, count)};
      const auto logits = network.forward({&input, 1}, rows);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    network.close(state);
    return all;
  }

  // The first row whose bits differ, or -1.
  static std::ptrdiff_t first_difference(std::span<const float> a, std::span<const float> b,
                                         std::size_t width) {
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t r = 0; r * width < a.size(); ++r) {
      if (std::memcmp(a.data() + r * width, b.data() + r * width, width * sizeof(float)) != 0) {
        return static_cast<std::ptrdiff_t>(r);
      }
    }
    return -1;
  }

  Checkpoint checkpoint_;
  std::vector<std::int32_t> ids_;
};

// 400 tokens pass the window, three ratio-128 windows and the indexer's top-k of 64 entries.
TEST_P(Determinism, ChunksGiveTheSameBits) {
  CpuExecutor executor(2);
  const auto net = network(executor);
  const auto prompt = std::span<const std::int32_t>(ids_).first(400);
  const auto vocab = static_cast<std::size_t>(net->config().vocab_size);
  const auto whole = prompt_logits(*net, prompt, 0);
  for (const std::size_t chunk : {1, 2, 3, 4, 5, 7, 64, 127, 128, 129}) {
    EXPECT_EQ(first_difference(whole, prompt_logits(*net, prompt, chunk), vocab), -1)
        << "chunk " << chunk;
  }
}

TEST_P(Determinism, CompanyGivesTheSameBits) {
  CpuExecutor executor(2);
  const auto net = network(executor);
  const auto vocab = static_cast<std::size_t>(net->config().vocab_size);
  const auto all = std::span<const std::int32_t>(ids_);
  // Sequences of different lengths and texts, all in one step, then one more token each.
  const std::size_t lengths[] = {1, 3, 4, 127, 128, 129, 260, 300};
  std::vector<SequenceState> states;
  for (std::size_t i = 0; i < std::size(lengths); ++i) states.push_back(net->open());
  std::vector<SegmentInput> inputs;
  std::vector<std::size_t> last;
  std::size_t rows = 0;
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    inputs.push_back({.state = &states[i], .ids = all.subspan(10 * i, lengths[i])});
    last.push_back((rows += lengths[i]) - 1);
  }
  const auto together = net->forward(inputs, last);
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    inputs[i].ids = all.subspan(10 * i + lengths[i], 1);
    every.push_back(i);
  }
  const auto next = net->forward(inputs, every);
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    const auto alone = prompt_logits(*net, all.subspan(10 * i, lengths[i] + 1), 0);
    const auto tail = std::span(alone).last(std::min(alone.size(), 2 * vocab));
    EXPECT_EQ(
        first_difference(tail.first(vocab), std::span(together).subspan(i * vocab, vocab), vocab),
        -1)
        << "prompt of " << lengths[i];
    EXPECT_EQ(first_difference(tail.last(vocab), std::span(next).subspan(i * vocab, vocab), vocab),
              -1)
        << "token after " << lengths[i];
    net->close(states[i]);
  }
}

TEST_P(Determinism, ForkedSequencesGoOnAlike) {
  CpuExecutor executor(2);
  const auto net = network(executor);
  const auto vocab = static_cast<std::size_t>(net->config().vocab_size);
  const auto all = std::span<const std::int32_t>(ids_);
  const auto alone = prompt_logits(*net, all.first(330), 0);
  SequenceState prefix = net->open();
  const SegmentInput first{.state = &prefix, .ids = all.first(261)};
  net->forward({&first, 1}, {});
  // A fork that goes another way first must not disturb the others.
  SequenceState other = net->fork(prefix);
  const SegmentInput elsewhere{.state = &other, .ids = all.subspan(700, 140)};
  net->forward({&elsewhere, 1}, {});
  SequenceState fork = net->fork(prefix);
  const SegmentInput rest{.state = &fork, .ids = all.subspan(261, 69)};
  const std::size_t last[] = {68};
  EXPECT_EQ(first_difference(std::span(alone).last(vocab), net->forward({&rest, 1}, last), vocab),
            -1);
}

TEST_P(Determinism, ThreadsAndInstructionSetsGiveTheSameBits) {
  const auto prompt = std::span<const std::int32_t>(ids_).first(300);
  std::map<std::string, std::vector<float>> results;
  std::vector<Isa> sets = {Isa::kAvx2};
  set_isa(Isa::kAuto);
  if (active_isa() == "avx512") sets.push_back(Isa::kAvx512);
  for (const Isa isa : sets) {
    set_isa(isa);
    for (const int threads : {1, 2, 3}) {
      CpuExecutor executor(threads);
      results[std::string(active_isa()) + " " + std::to_string(threads)] =
          prompt_logits(*network(executor), prompt, 0);
    }
  }
  set_isa(Isa::kAuto);
  const auto vocab = static_cast<std::size_t>(checkpoint_.config().vocab_size);
  for (const auto& [name, logits] : results) {
    EXPECT_EQ(first_difference(results.begin()->second, logits, vocab), -1)
        << name << " against " << results.begin()->first;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Determinism, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cupel
