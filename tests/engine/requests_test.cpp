// What the engine refuses, what it survives, and what it holds afterwards.
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine_support.h"
#include "support/expect_error.h"
#include "support/tiny_checkpoint.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using test::engine_options;
using test::expect_input_error;
using test::TinyCheckpoint;

// One request that cannot be served beside one that can: nothing runs.
void expect_refused(Engine& engine, const GenerationRequest& bad,
                    const std::vector<std::string>& parts) {
  const std::vector<GenerationRequest> requests = {{.prompt_ids = {0, 5}, .max_new_tokens = 1},
                                                   bad};
  int reported = 0;
  expect_input_error(
      [&] { engine.generate(requests, 1, [&](std::size_t, const Generation&) { ++reported; }); },
      parts);
  EXPECT_EQ(reported, 0);
}

TEST(EngineRequests, RefusedBeforeAnythingRuns) {
  Engine engine(engine_options(BackendKind::kPacked));
  ASSERT_EQ(engine.config().vocab_size, 768);
  expect_refused(engine, {}, {"request 1", "at least one token"});
  expect_refused(engine, {.prompt_ids = {0, 768}},
                 {"request 1, prompt token 1", "[0, 768)", "found 768"});
  expect_refused(engine, {.prompt_ids = {-1}}, {"request 1, prompt token 0", "found -1"});
  expect_refused(engine, {.prompt_ids = {0}, .max_new_tokens = 0}, {"max_new_tokens", "found 0"});
  expect_refused(engine, {.prompt_ids = {0}, .stop = {"x", ""}}, {"request 1", "stop"});
  for (const float temperature :
       {-1.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    expect_refused(engine, {.prompt_ids = {0}, .sampling = {.temperature = temperature}},
                   {"request 1", "temperature"});
  }
}

TEST(EngineRequests, PromptAndLimitMustFitTheContext) {
  TinyCheckpoint tiny("tiny-v4-0731");
  tiny.edit_config([](nlohmann::json& config) { config["max_position_embeddings"] = 40; });
  EngineOptions options = engine_options(BackendKind::kUnified);
  options.model = tiny.path();
  Engine engine(options);
  expect_refused(engine, {.prompt_ids = test::text_ids(0, 30), .max_new_tokens = 11},
                 {"request 1", "the context of 40", "30 + 11"});
  expect_refused(engine, {.prompt_ids = {0}, .max_new_tokens = std::numeric_limits<int>::max()},
                 {"the context of 40", "1 + 2147483647"});
  const Generation fits =
      test::generate_alone(engine, {.prompt_ids = test::text_ids(0, 30), .max_new_tokens = 10});
  EXPECT_EQ(fits.output_ids.size(), 10U);
  EXPECT_EQ(fits.finish, FinishReason::kLength);

  const auto ids = test::text_ids(0, 41);
  expect_input_error([&] { engine.logits(ids, {}); }, {"at most 40 tokens", "found 41"});
  expect_input_error([&] { engine.logits(std::span(ids).first(40), std::span(ids).last(1)); },
                     {"at most 40 tokens", "found 41"});
  EXPECT_EQ(engine.logits(std::span(ids).first(39), std::span(ids).last(1)).size(), 2U * 768);
}

TEST(EngineRequests, LogitsRefusesBadIds) {
  Engine engine(engine_options(BackendKind::kReference));
  expect_input_error([&] { engine.logits({}, {}); }, {"prompt_ids"});
  const std::vector<std::int32_t> good = {0, 5}, bad = {768};
  expect_input_error([&] { engine.logits(bad, {}); }, {"[0, 768)", "found 768"});
  expect_input_error([&] { engine.logits(good, bad); }, {"[0, 768)", "found 768"});
  EXPECT_EQ(engine.network().backend().bytes_in_use(), 0U);
}

TEST(EngineRequests, BadOptionsAndTokenizers) {
  EngineOptions options = engine_options(BackendKind::kPacked);
  options.max_running = 0;
  expect_input_error([&] { Engine{options}; }, {"max_running", "found 0"});
  options = engine_options(BackendKind::kPacked);
  options.prefill_chunk = -1;
  expect_input_error([&] { Engine{options}; }, {"prefill_chunk", "found -1"});

  TinyCheckpoint tiny("tiny-v4-0731");
  options = engine_options(BackendKind::kPacked);
  options.model = tiny.path();
  tiny.edit_json("tokenizer.json", [](nlohmann::json& json) {
    json["added_tokens"].push_back(json["added_tokens"][0]);
    json["added_tokens"].back()["id"] = 768;
    json["added_tokens"].back()["content"] = "<far>";
  });
  expect_input_error([&] { Engine{options}; }, {"tokenizer.json", "vocab_size 768", "id 768"});
}

// Row 700 of the vocabulary has no token, so no text leads to it, but a prompt of ids may.
constexpr std::int32_t kPoisoned = 700;

TEST(EngineRequests, NanInLogitsEndsOnlyItsRequest) {
  TinyCheckpoint tiny("tiny-v4-0731");
  tiny.edit_tensor("embed.weight", [](test::StoredTensor& tensor) {
    ASSERT_EQ(tensor.dtype, Dtype::kBF16);
    const std::uint16_t nan = 0x7fc0;
    const std::size_t width = static_cast<std::size_t>(tensor.shape[1]);
    for (std::size_t i = 0; i < width; ++i) {
      std::memcpy(tensor.data.data() + (kPoisoned * width + i) * sizeof(nan), &nan, sizeof(nan));
    }
  });
  for (const BackendKind backend :
       {BackendKind::kReference, BackendKind::kPacked, BackendKind::kUnified}) {
    EngineOptions options = engine_options(backend);
    options.model = tiny.path();
    Engine engine(options);
    auto poisoned = test::text_ids(0, 20);
    poisoned.back() = kPoisoned;
    const GenerationRequest good = {.prompt_ids = test::text_ids(3, 25), .max_new_tokens = 5};
    const GenerationRequest bad = {.prompt_ids = poisoned, .max_new_tokens = 5};
    const Generation alone = test::generate_alone(engine, good);
    ASSERT_EQ(alone.output_ids.size(), 5U);
    const auto together = test::generate(engine, {good, bad, good}, 0);
    test::expect_same(together[0], alone);
    test::expect_same(together[2], alone);
    EXPECT_EQ(together[1].finish, FinishReason::kError);
    EXPECT_THAT(together[1].error, testing::HasSubstr("NaN, first not finite after the embedding"));
    EXPECT_TRUE(together[1].output_ids.empty());
    // A slot that held NaN serves the next request as any other.
    test::expect_same(test::generate_alone(engine, good), alone);
  }
}

TEST(EngineRequests, EverythingIsGivenBack) {
  for (const BackendKind backend :
       {BackendKind::kReference, BackendKind::kPacked, BackendKind::kUnified}) {
    SCOPED_TRACE(backend_name(backend));
    Engine engine(engine_options(backend));
    const Network& store = engine.network();
    std::vector<GenerationRequest> requests;
    for (std::size_t i = 0; i < 4; ++i) {
      auto ids = test::text_ids(0, 20 + i);
      ids.back() = 30;
      requests.push_back({.prompt_ids = ids, .max_new_tokens = 1 + static_cast<int>(i)});
    }
    EXPECT_EQ(store.cache_bytes(), 0U);
    std::size_t during = 0;
    engine.generate(requests, 2, [&](std::size_t, const Generation&) {
      during = std::max(during, store.cache_bytes());
    });
    EXPECT_GT(during, 0U);
    EXPECT_EQ(engine.stats().cached_tokens, 3U * 19);
    EXPECT_GT(engine.stats().kept_prefixes, 0U);
    EXPECT_TRUE(engine.network().backend().owners_agree());
    engine.flush_prefixes();
    EXPECT_EQ(store.cache_bytes(), 0U);

    struct Full {};
    int reported = 0;
    EXPECT_THROW(engine.generate(requests, 3,
                                 [&](std::size_t, const Generation&) {
                                   if (++reported == 2) throw Full();
                                 }),
                 Full);
    EXPECT_EQ(reported, 2);
    EXPECT_EQ(engine.stats().running + engine.stats().waiting, 0U);
    engine.flush_prefixes();
    EXPECT_EQ(store.cache_bytes(), 0U);
    EXPECT_THROW(engine.logits(requests[0].prompt_ids, std::vector<std::int32_t>{768}), InputError);
    EXPECT_EQ(store.cache_bytes(), 0U);
  }
}

TEST(EngineRequests, NoRequestsIsNoWork) {
  Engine engine(engine_options(BackendKind::kUnified));
  EXPECT_TRUE(test::generate(engine, {}, 0).empty());
}

}  // namespace
}  // namespace cupel
