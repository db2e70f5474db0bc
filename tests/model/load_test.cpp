// Both bundled checkpoints load and run. Their shards hold tensors at offsets that are no multiples
// of the element size: legal, and a misaligned read shows under the undefined-behaviour sanitizer.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "cupel/base/error.h"
#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"

namespace cupel {
namespace {

class Load : public testing::TestWithParam<const char*> {
 protected:
  Load() : checkpoint_(std::string(CUPEL_SOURCE_DIR "/models/") + GetParam()) {}
  Checkpoint checkpoint_;
};

TEST_P(Load, TensorsAtOddOffsets) {
  std::size_t odd = 0;
  for (const SafetensorsFile& shard : checkpoint_.shards()) {
    for (const Tensor& tensor : shard.tensors())
      odd += tensor.begin % dtype_size(tensor.dtype) != 0;
  }
  EXPECT_GT(odd, 0u);
  CpuExecutor executor(2);
  const NetworkWeights weights = load_weights(checkpoint_, executor);
  EXPECT_EQ(weights.layers.size(), 5u);
  EXPECT_TRUE(
      std::ranges::all_of(weights.norm.to_host(), [](float w) { return std::isfinite(w); }));
}

// 9 tokens complete two entries of the ratio-4 layers.
TEST_P(Load, EveryBackendRuns) {
  const std::int32_t ids[] = {0, 20, 30, 40, 50, 60, 70, 80, 90};
  CpuExecutor executor(1);
  for (const BackendKind backend :
       {BackendKind::kReference, BackendKind::kPacked, BackendKind::kUnified}) {
    for (const KvDtype dtype : {KvDtype::kAuto, KvDtype::kFp8E4m3}) {
      Network network(checkpoint_, {.backend = backend, .kv_dtype = dtype}, executor);
      SequenceState state = network.open();
      const SegmentInput input{.state = &state, .ids = ids};
      const std::size_t last[] = {std::size(ids) - 1};
      const auto logits = network.forward({&input, 1}, last);
      EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) {
        return std::isfinite(x);
      })) << backend_name(backend);
      EXPECT_NE(*std::max_element(logits.begin(), logits.end()), logits[0]);
      network.close(state);
      EXPECT_EQ(network.backend().bytes_in_use(), 0u) << backend_name(backend);
    }
  }
}

TEST_P(Load, IdsOutsideTheVocabularyAreRefused) {
  CpuExecutor executor(1);
  Network network(checkpoint_, {}, executor);
  SequenceState state = network.open();
  for (const std::int32_t id : {-1, 768}) {
    const SegmentInput input{.state = &state, .ids = {&id, 1}};
    EXPECT_THROW(network.forward({&input, 1}, {}), InputError);
  }
  EXPECT_EQ(state.length, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Load, testing::Values("tiny-v4-preview", "tiny-v4-0731"),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "preview" : "official");
                         });

}  // namespace
}  // namespace cupel
