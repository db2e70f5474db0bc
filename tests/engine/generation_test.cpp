// Batched generation: company changes nothing, and what a result says is so.
#include <algorithm>
#include <memory>

#include "engine/engine_support.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::engine_options;
using test::expect_same;
using test::generate;
using test::generate_alone;
using test::text_ids;

struct Setting {
  const char* name;
  BackendKind backend;
  KvDtype kv_dtype = KvDtype::kAuto;
};

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.name;
}

class Company : public testing::TestWithParam<Setting> {
 protected:
  std::unique_ptr<Engine> engine(int prefill_chunk, int max_running, bool prefix_cache) const {
    EngineOptions options = engine_options(GetParam().backend, GetParam().kv_dtype);
    options.prefill_chunk = prefill_chunk;
    options.max_running = max_running;
    options.prefix_cache = prefix_cache;
    return std::make_unique<Engine>(options);
  }
};

// Prompts beyond the window of 128, below a window of a compressor, and of one token; some sampled.
std::vector<GenerationRequest> mixed_requests() {
  std::vector<GenerationRequest> requests;
  for (const std::size_t length : {3U, 150U, 1U, 17U, 131U, 64U, 4U, 129U, 18U}) {
    const int i = static_cast<int>(requests.size());
    requests.push_back({.prompt_ids = text_ids(10 * requests.size(), length),
                        .max_new_tokens = 2 + i % 5,
                        .sampling = {.temperature = i % 3 == 2 ? 0.8F : 0.0F, .seed = 7},
                        .stop = {}});
  }
  return requests;
}

// All begin with the same 40 ids: no more, for the next ids differ.
std::vector<GenerationRequest> prefixed_requests() {
  std::vector<GenerationRequest> requests;
  for (const std::size_t length : {41U, 90U, 170U, 50U, 44U}) {
    auto ids = text_ids(0, length);
    ids[40] = 100 + static_cast<std::int32_t>(requests.size());
    requests.push_back({.prompt_ids = ids, .max_new_tokens = 4});
  }
  return requests;
}

std::vector<Generation> each_alone(Engine& engine, const std::vector<GenerationRequest>& requests) {
  std::vector<Generation> results;
  for (const GenerationRequest& request : requests) {
    results.push_back(generate_alone(engine, request));
    EXPECT_EQ(results.back().cached_prompt_tokens, 0);
  }
  return results;
}

TEST_P(Company, ChangesNothing) {
  const auto mixed = mixed_requests(), prefixed = prefixed_requests();
  const auto first = engine(0, 256, false);
  const auto mixed_alone = each_alone(*first, mixed);
  const auto prefixed_alone = each_alone(*first, prefixed);
  for (const int chunk : {0, 1, 17}) {
    // Two sequences at most, whatever concurrency is asked for, go with the chunk of 17.
    const auto other = engine(chunk, chunk == 17 ? 2 : 256, true);
    for (const int concurrency : {1, 2, 8}) {
      SCOPED_TRACE(testing::Message() << "chunk " << chunk << ", concurrency " << concurrency);
      const auto together = generate(*other, mixed, concurrency);
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        expect_same(together[i], mixed_alone[i]);
      }
    }
    SCOPED_TRACE(testing::Message() << "chunk " << chunk << ", shared prefix");
    const auto together = generate(*other, prefixed, 3);
    for (std::size_t i = 0; i < prefixed.size(); ++i) {
      EXPECT_EQ(together[i].cached_prompt_tokens, i == 0 ? 0 : 40);
      expect_same(together[i], prefixed_alone[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Company,
                         testing::Values(Setting{"reference", BackendKind::kReference},
                                         Setting{"packed", BackendKind::kPacked},
                                         Setting{"unified_bf16", BackendKind::kUnified},
                                         Setting{"unified_fp8", BackendKind::kUnified,
                                                 KvDtype::kFp8E4m3}),
                         [](const auto& info) { return std::string(info.param.name); });

class GenerationTest : public testing::Test {
 protected:
  std::vector<std::int32_t> encode(const std::string& text) {
    return engine_.tokenizer().encode(text);
  }

  Engine engine_{engine_options(BackendKind::kUnified)};
};

TEST_F(GenerationTest, CountsThePrefixOnlyWhereItIsShared) {
  const auto cached = [&](const std::vector<std::vector<std::int32_t>>& prompts) {
    engine_.flush_prefixes();
    std::vector<GenerationRequest> requests;
    for (const auto& ids : prompts) requests.push_back({.prompt_ids = ids, .max_new_tokens = 1});
    std::vector<int> counts;
    for (const auto& g : generate(engine_, requests, 0)) counts.push_back(g.cached_prompt_tokens);
    return counts;
  };
  using testing::ElementsAre;
  const auto same = text_ids(0, 30);
  EXPECT_THAT(cached({same}), ElementsAre(0));
  // The last prompt token is computed for each: its row gives the first logits.
  EXPECT_THAT(cached({same, same, same}), ElementsAre(0, 29, 29));
  EXPECT_THAT(cached({same, text_ids(0, 20)}), ElementsAre(0, 19));
  EXPECT_THAT(cached({same, text_ids(1, 30)}), ElementsAre(0, 0));
  EXPECT_THAT(cached({same, text_ids(0, 10)}), ElementsAre(0, 0));  // too short to be worth it
}

TEST_F(GenerationTest, EndsAtItsLimitAndAtTheEndOfTheSentence) {
  const GenerationRequest request = {.prompt_ids = text_ids(0, 300), .max_new_tokens = 7};
  const Generation cut = generate_alone(engine_, request);
  EXPECT_EQ(cut.finish, FinishReason::kLength);
  EXPECT_EQ(cut.output_ids.size(), 7U);
  EXPECT_EQ(cut.text, engine_.tokenizer().decode(cut.output_ids));

  // The model was trained to end an answer in chat form.
  const Generation whole = generate_alone(
      engine_, {.prompt_ids = encode(
                    "<｜begin▁of▁sentence｜><｜User｜>Ivy has 5 apples. Ivy buys 3 more apples. "
                    "How many apples does Ivy have now?<｜Assistant｜></think>")});
  EXPECT_EQ(whole.finish, FinishReason::kEos);
  ASSERT_GT(whole.output_ids.size(), 2U);
  EXPECT_EQ(whole.output_ids.back(), engine_.config().eos_token_id);
  auto shown = whole.output_ids;
  shown.pop_back();
  EXPECT_EQ(whole.text, engine_.tokenizer().decode(shown));
  EXPECT_THAT(whole.text, testing::HasSubstr("8"));
}

// Every stop string that begins inside one token of the answer and ends inside a later one.
TEST_F(GenerationTest, StopStringsMayBeginAndEndInsideTokens) {
  const GenerationRequest request = {.prompt_ids = text_ids(0, 300), .max_new_tokens = 40};
  const Generation whole = generate_alone(engine_, request);
  const auto& ids = whole.output_ids;
  std::vector<GenerationRequest> requests;
  for (std::size_t i = 0; i + 2 < ids.size(); ++i) {
    for (std::size_t j = i + 1; j < i + 3; ++j) {
      const auto first = engine_.tokenizer().token_bytes(ids[i]);
      const auto last = engine_.tokenizer().token_bytes(ids[j]);
      if (first.size() < 2 || last.size() < 2) continue;
      std::string stop(first.substr(1));
      if (j == i + 2) stop += engine_.tokenizer().token_bytes(ids[i + 1]);
      stop += last.front();
      requests.push_back(request);
      requests.back().stop = {"not in the answer", stop};
    }
  }
  ASSERT_GT(requests.size(), 3U);
  const auto results = generate(engine_, requests, 0);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const std::string& stop = requests[r].stop[1];
    SCOPED_TRACE(testing::PrintToString(stop));
    const std::size_t at = whole.text.find(stop);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(results[r].finish, FinishReason::kStopString);
    EXPECT_EQ(results[r].text, whole.text.substr(0, at));
    // Generation ends with the token that completes the stop string.
    std::size_t count = 0, bytes = 0;
    while (bytes < at + stop.size()) bytes += engine_.tokenizer().token_bytes(ids[count++]).size();
    EXPECT_EQ(
        results[r].output_ids,
        std::vector<std::int32_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

// The smallest difference over the tokens that exist, and its step, from the logits of each step.
std::pair<float, int> smallest_margin(Engine& engine, const std::vector<std::int32_t>& prompt,
                                      std::span<const std::int32_t> output) {
  const auto logits = engine.logits(prompt, output.first(output.size() - 1));
  std::pair<float, int> smallest = {std::numeric_limits<float>::infinity(), -1};
  for (std::size_t i = 0; i < output.size(); ++i) {
    std::vector<float> row;
    for (std::int32_t id = 0; id < 768; ++id) {
      if (engine.tokenizer().has_token(id)) {
        row.push_back(logits.at(i * 768 + static_cast<std::size_t>(id)));
      }
    }
    EXPECT_EQ(row.size(), 639U);
    std::ranges::sort(row, std::greater<>());
    if (row[0] - row[1] < smallest.first) smallest = {row[0] - row[1], static_cast<int>(i)};
  }
  return smallest;
}

TEST_F(GenerationTest, MinMarginIsTheSmallestTopTwoDifference) {
  for (const float temperature : {0.0F, 1.5F}) {
    for (const int length : {1, 2, 24}) {
      SCOPED_TRACE(testing::Message() << "temperature " << temperature << ", length " << length);
      const GenerationRequest request = {.prompt_ids = text_ids(0, 200),
                                         .max_new_tokens = length,
                                         .sampling = {.temperature = temperature, .seed = 3}};
      const Generation g = generate_alone(engine_, request);
      ASSERT_EQ(g.output_ids.size(), static_cast<std::size_t>(length));
      const auto [margin, step] = smallest_margin(engine_, request.prompt_ids, g.output_ids);
      EXPECT_EQ(g.min_margin, margin);
      EXPECT_EQ(g.min_margin_step, step);
    }
  }
}

TEST_F(GenerationTest, TimesAreInOrder) {
  std::vector<GenerationRequest> requests(3, {.prompt_ids = text_ids(0, 40), .max_new_tokens = 3});
  const auto results = generate(engine_, requests, 1);
  double before = 0;
  for (const Generation& g : results) {  // one after the other, from one start
    EXPECT_LE(before, g.queue_seconds);
    EXPECT_LT(g.queue_seconds, g.first_token_seconds);
    EXPECT_LT(g.first_token_seconds, g.total_seconds);
    before = g.total_seconds;
  }
}

}  // namespace
}  // namespace cupel
