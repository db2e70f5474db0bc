#include "cupel/eval/engine_target.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/eval/probe/nll.h"
#include "cupel/eval/probe/repeatability.h"
#include "cupel/eval/probe/retrieval.h"
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
    EXPECT_EQ(found[i].margins, expected[i].margins);
    ASSERT_EQ(found[i].margins.size(), found[i].output_ids.size());
    EXPECT_EQ(found[i].margins.at(static_cast<std::size_t>(found[i].min_margin_step)),
              found[i].min_margin);
    EXPECT_GT(found[i].first_token_seconds, 0);
    EXPECT_GE(found[i].total_seconds, found[i].first_token_seconds);
  }
  EXPECT_NE(found[3].output_ids[0], found[2].output_ids[0]);  // the temperature arrived
  EXPECT_EQ(target.model_fingerprint(), engine.fingerprint());
}

// By the contract of the engine no company changes an answer, so the probe must find nothing; and
// the small model copies what word problems made it learn to copy, in their form alone.
TEST(EngineTarget, Probes) {
  Engine engine({.model = CUPEL_SOURCE_DIR "/models/tiny-v4-0731", .network = {}, .threads = 2});
  EngineTarget target(engine);
  const std::string bos(kBosText);
  std::vector<CompletionRequest> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = fmt::format(
        "{}Question: Ivy has {} apples. Ivy buys {} more apples. How many apples does Ivy have "
        "now?\nAnswer:",
        bos, 11 + 7 * i, 5 + 3 * i);
    requests[i].stop = {"Question"};
    requests[i].max_new_tokens = 24;
  }
  const ProbeResult same = probe_repeatability(target, requests);
  ASSERT_EQ(same.items.size(), 6U);
  for (const ProbeItem& item : same.items) EXPECT_EQ(item.fault, 0) << item.id;

  const ProbeResult phase = probe_phase(
      target, {.form = "Question: Ivy has {key} apples.{filler} Ivy buys 5 more apples. How many "
                       "apples does Ivy have now?\nAnswer:",
               .filler = " Ivy",
               .longest = 1,
               .max_new_tokens = 6});
  EXPECT_EQ(phase.items.size(), 16U);
  EXPECT_EQ(phase.items[0].fault, 0);
  EXPECT_THAT(phase.lines[0], ::testing::MatchesRegex("Prompts of ([0-9]+) to ([0-9]+) tokens."));

  // Two tokens more of the same text, by the engine's own logits.
  const std::vector<std::string> texts = {bos + "Question: Ivy has 5 apples.", bos + "xq zzv 9#"};
  const auto likely = target.likelihoods(texts);
  const auto ids = engine.tokenizer().encode(texts[0]);
  ASSERT_EQ(likely[0].tokens, static_cast<int>(ids.size()) - 1);
  const auto logits = engine.logits(ids, {});  // after the whole text: predicts what follows
  const TextLikelihood longer =
      target.likelihoods(std::vector<std::string>{texts[0] + " Ivy"}).front();
  const std::int32_t next = engine.tokenizer().encode(texts[0] + " Ivy").back();
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l));
  EXPECT_NEAR(longer.log_probability - likely[0].log_probability,
              logits[static_cast<std::size_t>(next)] - std::log(sum), 1e-6);
  const ProbeResult nll = probe_nll(target, texts);
  EXPECT_GT(nll.items[0].fault, 0);
  EXPECT_LT(nll.items[0].fault, nll.items[1].fault);
}

}  // namespace
}  // namespace cupel
