#include "cupel/eval/engine_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/eval/task.h"

namespace cupel {
namespace {

// What the engine tells of a request is what the target tells of it.
TEST(EngineTarget, CarriesEveryFieldOver) {
  Engine engine({.model = CUPEL_SOURCE_DIR "/models/tiny-v4-0731",
                 .network = {},
                 .threads = 2,
                 .prefix_cache = false});
  EngineTarget target(engine);
  const std::string bos(kBosText);
  const std::string question =
      "Ivy has 5 apples. Ivy buys 3 more apples. How many apples does Ivy have now?";
  std::vector<CompletionRequest> requests(4);
  requests[0].prompt = bos + "<｜User｜>" + question + "<｜Assistant｜></think>";
  requests[1].prompt = bos + "Question: " + question + "\nAnswer:";
  requests[1].stop = {"Question", "\n\n"};
  requests[2] = requests[1];
  requests[2].max_new_tokens = 3;
  requests[3] = requests[1];
  requests[3].temperature = 1000;
  requests[3].seed = 5;
  requests[3].max_new_tokens = 8;
  requests[3].stop = {};

  std::vector<GenerationRequest> same;
  for (const CompletionRequest& r : requests) {
    same.push_back({.prompt_ids = engine.tokenizer().encode(r.prompt),
                    .max_new_tokens = r.max_new_tokens,
                    .sampling = {.temperature = r.temperature, .seed = r.seed},
                    .stop = r.stop});
  }
  std::vector<Generation> expected(4);
  engine.generate(same, 0, [&](std::size_t i, const Generation& g) { expected.at(i) = g; });
  std::vector<Completion> found(4);
  target.complete(requests, 2, [&](std::size_t i, const Completion& c) { found.at(i) = c; });

  const StopReason reasons[] = {StopReason::kEos, StopReason::kStopString, StopReason::kLength,
                                StopReason::kLength};
  for (std::size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].stop_reason, reasons[i]);
    EXPECT_EQ(found[i].text, expected[i].text);
    EXPECT_EQ(found[i].output_ids, expected[i].output_ids);
    EXPECT_EQ(found[i].error, "");
    EXPECT_EQ(found[i].prompt_tokens, same[i].prompt_ids.size());
    EXPECT_EQ(found[i].cached_prompt_tokens, 0);
    EXPECT_EQ(found[i].completion_tokens, expected[i].output_ids.size());
    EXPECT_EQ(found[i].min_margin, expected[i].min_margin);
    EXPECT_EQ(found[i].min_margin_step, expected[i].min_margin_step);
    EXPECT_GT(found[i].first_token_seconds, 0);
    EXPECT_GE(found[i].total_seconds, found[i].first_token_seconds);
  }
  EXPECT_NE(found[3].output_ids[0], found[2].output_ids[0]);  // the temperature arrived
  EXPECT_EQ(target.model_fingerprint(), engine.fingerprint());
}

}  // namespace
}  // namespace cupel
