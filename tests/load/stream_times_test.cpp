// Events of the three interfaces, and the times that are made of them.
#include "cupel/load/stream_times.h"

#include "load/streams.h"
#include "support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const PartSource kSource{.url = "http://x/y", .api_key = "secret"};

std::vector<StreamEvent> read(Api api, const json& part) {
  return read_stream_events(api, part.dump(), kSource);
}

TEST(StreamEvent, GenerateTellsItsTokens) {
  const auto events = read(Api::kGenerate, test::generate_event(3, false, 20, 5, 8));
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].sequence, 5U);
  EXPECT_EQ(events[0].tokens, 3);
  EXPECT_FALSE(events[0].finished);
  ASSERT_TRUE(events[0].usage);
  EXPECT_EQ(events[0].usage->prompt, 20);
  EXPECT_EQ(events[0].usage->cached_prompt, 8);
  EXPECT_EQ(events[0].usage->completion, 3);
  json single = test::generate_event(4, true);
  single.erase("index");
  EXPECT_EQ(read(Api::kGenerate, single)[0].sequence, 0U);
  EXPECT_TRUE(read(Api::kGenerate, single)[0].finished);
}

TEST(StreamEvent, OpenAiShowsTextThoughtsAndUsage) {
  const auto choice = [](const json& content) {
    json all = {{"index", 1}, {"finish_reason", nullptr}};
    all.update(content);
    return json{{"choices", json::array({all})}};
  };
  EXPECT_TRUE(read(Api::kCompletions, choice({{"text", "a"}}))[0].shows_text);
  EXPECT_FALSE(read(Api::kCompletions, choice({{"text", ""}}))[0].shows_text);
  EXPECT_EQ(read(Api::kCompletions, choice({{"text", "a"}}))[0].sequence, 1U);
  for (const char* key : {"content", "reasoning_content", "reasoning"}) {
    EXPECT_TRUE(read(Api::kChat, choice({{"delta", {{key, "a"}}}}))[0].shows_text) << key;
  }
  EXPECT_FALSE(read(Api::kChat, choice({{"delta", {{"role", "assistant"}, {"content", ""}}}}))[0]
                   .shows_text);
  EXPECT_FALSE(read(Api::kChat, choice({{"delta", {{"content", nullptr}}}}))[0].shows_text);
  const auto last = read(Api::kChat, {{"choices", json::array()},
                                      {"usage", {{"prompt_tokens", 4}, {"completion_tokens", 9}}}});
  ASSERT_EQ(last.size(), 1U);
  EXPECT_FALSE(last[0].sequence);
  ASSERT_TRUE(last[0].usage);
  EXPECT_EQ(last[0].usage->completion, 9);
}

TEST(StreamEvent, RefusesWhatIsNone) {
  using test::expect_input_error;
  expect_input_error([] { read_stream_events(Api::kGenerate, "plain", kSource); }, {"JSON"});
  expect_input_error([] { read(Api::kGenerate, json{{"text", "a"}}); }, {"meta_info"});
  expect_input_error([] { read(Api::kCompletions, json{{"text", "a"}}); }, {"choices"});
  expect_input_error(
      [] {
        read(Api::kChat, {{"choices", {{{"text", "secret"}}}}});
      },
      {"delta", "[key]"});
  EXPECT_THROW(read(Api::kGenerate, {{"error", {{"message", "out of memory"}}}}), TransientError);
}

// Seconds and tokens, cumulative as /generate tells them.
StreamTimes generate_times(const std::vector<std::pair<double, int>>& events) {
  StreamTimes times(1);
  for (const auto& [seconds, tokens] : events) {
    const bool end = tokens == events.back().second;
    for (const StreamEvent& event : read(Api::kGenerate, test::generate_event(tokens, end))) {
      times.add(event, seconds, "here");
    }
  }
  return times;
}

TEST(StreamTimes, AGapIsSharedByTheTokensOfItsEvent) {
  // Three tokens come at 2.5; the last event brings none.
  const StreamTimes times = generate_times({{0.5, 0}, {1, 1}, {2, 2}, {2.5, 5}, {2.75, 5}});
  const SequenceTimes& s = times.sequences().front();
  EXPECT_EQ(s.first_token, 1);
  EXPECT_EQ(s.last_token, 2.5);
  EXPECT_EQ(s.tokens, 5);
  EXPECT_EQ(s.events, 3);
  EXPECT_THAT(s.gaps, ElementsAre(1, testing::DoubleEq(0.5 / 3), testing::DoubleEq(0.5 / 3),
                                  testing::DoubleEq(0.5 / 3)));
  EXPECT_TRUE(times.finished());
}

TEST(StreamTimes, TokensBesideTheFirstHaveNoGap) {
  const StreamTimes times = generate_times({{1, 4}, {2, 5}});
  EXPECT_EQ(times.sequences().front().first_token, 1);
  EXPECT_THAT(times.sequences().front().gaps, ElementsAre(1));
  EXPECT_EQ(times.usage()->completion, 5);
}

TEST(StreamTimes, OfOpenAiEachPieceOfTextCounts) {
  StreamTimes times(1);
  StreamEvent role;
  role.sequence = 0;
  StreamEvent text = role;
  text.shows_text = true;
  StreamEvent last = role;
  last.finished = true;
  times.add(role, 0.25, "here");
  times.add(text, 1, "here");
  times.add(text, 1.5, "here");
  times.add(text, 3, "here");
  EXPECT_FALSE(times.finished());
  EXPECT_FALSE(times.usage());
  times.add(last, 3.5, "here");
  StreamEvent usage;
  usage.usage = TokenUsage{.prompt = 4, .cached_prompt = 0, .completion = 8};
  times.add(usage, 4, "here");
  EXPECT_TRUE(times.finished());
  EXPECT_EQ(times.usage()->completion, 8);
  EXPECT_EQ(times.events(), 3);
  EXPECT_EQ(times.sequences().front().first_token, 1);
  EXPECT_THAT(times.sequences().front().gaps, ElementsAre(0.5, 1.5));
}

TEST(StreamTimes, OfABatchTheLastFirstTokenCounts) {
  StreamTimes times(2);
  const auto add = [&](int index, int tokens, bool end, double seconds) {
    times.add(read(Api::kGenerate, test::generate_event(tokens, end, 7, index, 2))[0], seconds,
              "here");
  };
  add(0, 1, false, 1);
  EXPECT_FALSE(times.last_first_token());
  add(0, 2, true, 2);
  EXPECT_FALSE(times.usage());
  add(1, 1, false, 3);
  add(1, 2, true, 4);
  EXPECT_EQ(times.last_first_token(), 3);
  EXPECT_TRUE(times.finished());
  EXPECT_EQ(times.usage()->prompt, 14);
  EXPECT_EQ(times.usage()->cached_prompt, 4);
  EXPECT_EQ(times.usage()->completion, 4);
  test::expect_input_error([&] { add(2, 1, false, 5); }, {"here", "below 2", "2"});
}

}  // namespace
}  // namespace cupel
