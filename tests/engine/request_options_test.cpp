// What a request may ask beyond a prompt and a limit, and what it hears on the way.
#include <cmath>

#include "engine/engine_support.h"
#include "support/tiny_checkpoint.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::generate_alone;
using test::text_ids;

class RequestOptions : public testing::Test {
 protected:
  Generation run(const GenerationRequest& request, RequestCallbacks callbacks = {}) {
    Generation result;
    callbacks.on_done = [&](const Generation& g) { result = g; };
    engine_.submit(request, callbacks);
    while (engine_.step()) {
    }
    return result;
  }
  // An answer that ends by itself after some tokens.
  GenerationRequest question() {
    GenerationRequest r;
    r.prompt_ids = engine_.tokenizer().encode(
        "<｜begin▁of▁sentence｜><｜User｜>Ivy has 5 apples. Ivy buys 3 more apples. "
        "How many apples does Ivy have now?<｜Assistant｜></think>");
    r.max_new_tokens = 60;
    return r;
  }

  Engine engine_{test::engine_options(BackendKind::kUnified)};
};

TEST_F(RequestOptions, EndsAreWhereTheRequestWantsThem) {
  GenerationRequest r = question();
  const Generation plain = run(r);
  ASSERT_EQ(plain.finish, FinishReason::kEos);
  const std::size_t length = plain.output_ids.size();
  ASSERT_LT(length, 50U);

  r.ignore_eos = true;
  const Generation on = run(r);
  EXPECT_EQ(on.finish, FinishReason::kLength);
  EXPECT_EQ(on.output_ids.size(), 60U);
  EXPECT_EQ(on.output_ids[length - 1], engine_.config().eos_token_id);

  r = question();
  r.min_new_tokens = static_cast<int>(length) + 3;
  const Generation longer = run(r);
  EXPECT_GE(longer.output_ids.size(), length + 3);
  EXPECT_NE(longer.output_ids[length - 1], engine_.config().eos_token_id);

  r = question();
  r.stop_ids = {plain.output_ids[2]};
  const Generation stopped = run(r);
  EXPECT_EQ(stopped.finish, FinishReason::kEos);
  EXPECT_EQ(stopped.output_ids,
            std::vector<std::int32_t>(plain.output_ids.begin(), plain.output_ids.begin() + 3));
}

TEST_F(RequestOptions, TheTextOfTheTokensIsTheTextOfTheAnswer) {
  GenerationRequest r = question();
  const Generation plain = run(r);
  ASSERT_GT(plain.text.size(), 12U);
  for (const std::string& stop :
       {std::string(), plain.text.substr(5, 3), plain.text.substr(7, 4) + "never"}) {
    SCOPED_TRACE(testing::PrintToString(stop));
    if (!stop.empty()) r.stop = {stop};
    std::string text;
    std::vector<std::int32_t> ids;
    RequestCallbacks callbacks;
    callbacks.on_token = [&](const TokenEvent& event) {
      text += event.text;
      ids.push_back(event.id);
    };
    const Generation g = run(r, callbacks);
    EXPECT_EQ(text, g.text);
    EXPECT_EQ(ids, g.output_ids);
    if (g.finish == FinishReason::kStopString) {
      EXPECT_EQ(g.stop, stop);
    }
  }
}

TEST_F(RequestOptions, LogprobsAgreeWithTheLogits) {
  GenerationRequest r;
  r.prompt_ids = text_ids(0, 150);
  r.max_new_tokens = 4;
  r.top_logprobs = 2;
  r.prompt_logprobs = true;
  const Generation g = run(r);
  ASSERT_EQ(g.logprobs.size(), 4U);
  ASSERT_EQ(g.prompt_logprobs.size(), 149U);
  EXPECT_EQ(g.cached_prompt_tokens, 0);
  // The same rows from the first prompt token on, fed one by one.
  std::vector<std::int32_t> fed(r.prompt_ids.begin() + 1, r.prompt_ids.end());
  fed.insert(fed.end(), g.output_ids.begin(), g.output_ids.end());
  const auto logits = engine_.logits(std::span(r.prompt_ids).first(1), fed);
  for (std::size_t i = 0; i < fed.size(); ++i) {
    const TokenLogprobs expected =
        engine_.sampler().logprobs(std::span(logits).subspan(i * 768, 768), fed[i], 2);
    const TokenLogprobs& actual = i < 149 ? g.prompt_logprobs[i] : g.logprobs[i - 149];
    ASSERT_EQ(actual.id, fed[i]) << i;
    ASSERT_EQ(actual.logprob, expected.logprob) << i;  // to the bit
    ASSERT_EQ(actual.top, expected.top) << i;
  }
  // Chunks, and a beginning that is kept, change nothing.
  EXPECT_EQ(run(r).prompt_logprobs.back().logprob, g.prompt_logprobs.back().logprob);
}

TEST_F(RequestOptions, ACancelledRequestSaysSoAndGivesBackItsCache) {
  GenerationRequest r = question();
  std::vector<FinishReason> ends;
  RequestCallbacks callbacks;
  callbacks.on_done = [&](const Generation& g) { ends.push_back(g.finish); };
  const RequestId first = engine_.submit(r, callbacks), second = engine_.submit(r, callbacks);
  engine_.step();
  EXPECT_TRUE(engine_.cancel(second));  // waits for the first one's prefix
  EXPECT_FALSE(engine_.cancel(second));
  EXPECT_TRUE(engine_.cancel(first));
  EXPECT_EQ(ends, (std::vector<FinishReason>(2, FinishReason::kCancelled)));
  EXPECT_FALSE(engine_.step());
  engine_.flush_prefixes();
  EXPECT_EQ(engine_.network().cache_bytes(), 0U);
}

TEST_F(RequestOptions, AConversationGoesOnFromItsLastTurn) {
  GenerationRequest r = question();
  const Generation first = run(r);
  r.prompt_ids.insert(r.prompt_ids.end(), first.output_ids.begin(), first.output_ids.end());
  const auto more = text_ids(50, 20);
  r.prompt_ids.insert(r.prompt_ids.end(), more.begin(), more.end());
  const Generation warm = run(r);
  EXPECT_EQ(static_cast<std::size_t>(warm.cached_prompt_tokens), r.prompt_ids.size() - 21);
  engine_.flush_prefixes();
  const Generation cold = run(r);
  EXPECT_EQ(cold.cached_prompt_tokens, 0);
  test::expect_same(warm, cold);
}

TEST_F(RequestOptions, ATinyCacheRefusesWhatNeverFits) {
  EngineOptions options = test::engine_options(BackendKind::kPacked);
  options.max_cache_bytes = 1;
  EXPECT_THROW(Engine{options}, InputError);
  options.max_cache_bytes = engine_.network().sequence_bytes(300);
  Engine engine(options);
  GenerationRequest r;
  r.prompt_ids = text_ids(0, 200);
  r.max_new_tokens = 50;
  EXPECT_EQ(generate_alone(engine, r).output_ids.size(), 50U);
  r.max_new_tokens = 2000;
  try {
    engine.submit(r);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("bytes of cache"));
  }
}

// Layer 3's norm before the experts gives NaN: only what passes it is lost, and the error says
// where.
TEST(RequestFaults, TheErrorNamesTheLayer) {
  for (const auto& [tensor, place] : std::vector<std::pair<std::string, std::string>>{
           {"layers.3.ffn_norm.weight", "layer 3, experts"},
           {"layers.1.attn_norm.weight", "layer 1, attention"},
           {"layers.4.ffn_norm.weight", "layer 4, experts"},
           {"norm.weight", "the output head"}}) {
    test::TinyCheckpoint tiny("tiny-v4-0731");
    tiny.edit_tensor(tensor, [](test::StoredTensor& t) {
      std::fill(t.data.begin(), t.data.end(), std::byte{0x7f});  // NaN in bf16 and fp32
      t.data.back() = std::byte{0x7f};
      for (std::size_t i = 0; i + 1 < t.data.size(); i += 2) t.data[i] = std::byte{0xc0};
    });
    EngineOptions options = test::engine_options(BackendKind::kPacked);
    options.model = tiny.path();
    Engine engine(options);
    GenerationRequest r;
    r.prompt_ids = text_ids(0, 10);
    const Generation g = generate_alone(engine, r);
    EXPECT_EQ(g.finish, FinishReason::kError);
    EXPECT_THAT(g.error, testing::HasSubstr(place)) << tensor;
  }
}

}  // namespace
}  // namespace cupel
