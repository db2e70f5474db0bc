// FP8 experts hold the same values as FP4 ones; what differs is that their products add up K in
// groups of 128 instead of 32 (spec section 2.7).
#include <algorithm>
#include <cmath>
#include <fstream>

#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cupel/checkpoint/repack.h"
#include "cupel/formats/error_measures.h"
#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/model/network.h"
#include "cupel/text/tokenizer.h"

namespace cupel {
namespace {

std::filesystem::path bundled(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
}

std::string few_shots() {
  std::string text = "<｜begin▁of▁sentence｜>";
  std::ifstream shots(CUPEL_SOURCE_DIR "/data/wordmath/shots.jsonl");
  std::string line;
  for (int i = 0; i < 4 && std::getline(shots, line); ++i) {
    const auto shot = nlohmann::json::parse(line);
    text += "Question: " + shot.at("question").get<std::string>() +
            "\nAnswer: " + shot.at("answer").get<std::string>() + "\n\n";
  }
  return text;
}

// Logits at every position of the prompt.
std::vector<float> logits_of(const std::filesystem::path& folder, Numerics numerics) {
  const Checkpoint checkpoint(folder);
  CpuExecutor executor(2);
  Network network(checkpoint, {.backend = BackendKind::kReference, .numerics = numerics}, executor);
  const auto ids = Tokenizer::load(folder / "tokenizer.json").encode(few_shots());
  SequenceState state = network.open();
  const SegmentInput input{.state = &state, .ids = ids};
  std::vector<std::size_t> rows(ids.size());
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = r;
  return network.forward({&input, 1}, rows);
}

class RepackLogits : public testing::TestWithParam<const char*> {};

TEST_P(RepackLogits, Fp8DiffersByTheOrderOfSumsAlone) {
  const test::TemporaryFolder folder;
  const auto fp4 = bundled(GetParam());
  const auto fp8 = folder.path() / "fp8";
  repack(fp4, fp8, {.experts = ExpertDtype::kFp8, .progress = {}});
  // The same weights, in fp32 throughout: equal but for the last bits of the sums.
  const auto exact = relative_frobenius_error(logits_of(fp8, Numerics::kFloat32),
                                              logits_of(fp4, Numerics::kFloat32));
  // A sum that falls on the other side of a bf16 rounding goes through every quantiser after it.
  const std::vector<float> theirs = logits_of(fp4, Numerics::kReference);
  const auto rounded = relative_frobenius_error(logits_of(fp8, Numerics::kReference), theirs);
  std::printf("[ %s ] relative difference of the logits: float32 %.2e, reference %.2e\n",
              GetParam(), exact, rounded);
  EXPECT_LT(exact, 1e-5);
  EXPECT_LT(rounded, 0.02);
  // The yardstick is no rubber band: one doubled scale of 64 in one of 240 weights exceeds both.
  test::TinyCheckpoint wrong(GetParam());
  wrong.edit_tensor("layers.1.ffn.experts.3.w2.scale", [](test::StoredTensor& tensor) {
    for (std::byte& scale : tensor.data)
      scale = static_cast<std::byte>(static_cast<int>(scale) + 1);
  });
  EXPECT_GT(relative_frobenius_error(logits_of(wrong.path(), Numerics::kFloat32),
                                     logits_of(fp4, Numerics::kFloat32)),
            1e-3);
}

INSTANTIATE_TEST_SUITE_P(Bundled, RepackLogits, testing::Values("tiny-v4-preview", "tiny-v4-0731"),
                         [](const auto& info) { return std::string(info.param).substr(8); });

}  // namespace
}  // namespace cupel
