#include "cupel/text/stop_strings.h"

#include "text/random_text.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using Match = StopMatcher::Match;

TEST(StopMatcher, FindsAStopAcrossFeeds) {
  StopMatcher matcher({"Question", "<|separator|>"});
  EXPECT_EQ(matcher.feed("#### 84\n\nQue"), std::nullopt);
  EXPECT_EQ(matcher.safe_length(), 9U);
  EXPECT_EQ(matcher.text_length(), 12U);
  const auto match = matcher.feed("stion: Dan");
  EXPECT_EQ(match, (Match{9, 0}));
  EXPECT_EQ(matcher.safe_length(), 9U);
  EXPECT_EQ(matcher.text_length(), 9U);
  EXPECT_EQ(matcher.feed("<|separator|>"), match);
}

TEST(StopMatcher, ReleasesWhatTurnsOutNotToBeAStop) {
  StopMatcher matcher({"abab!"});
  matcher.feed("xababa");
  EXPECT_EQ(matcher.safe_length(), 3U);  // "aba" may still become "abab!"
  matcher.feed("c");
  EXPECT_EQ(matcher.safe_length(), 7U);
}

TEST(StopMatcher, EarliestStartWinsWithinAFeed) {
  EXPECT_EQ(StopMatcher({"bc", "abcd"}).feed("abcd"), (Match{0, 1}));
  EXPECT_EQ(StopMatcher({"abc", "ab", "ab"}).feed("xabc"), (Match{1, 1}));  // shortest, then first
  // A stop that is complete does not wait for a longer one.
  StopMatcher matcher({"bc", "abcd"});
  EXPECT_EQ(matcher.feed("abc"), (Match{1, 0}));
}

TEST(StopMatcher, NoStopsHoldNothingBack) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.feed("text"), std::nullopt);
  EXPECT_EQ(matcher.safe_length(), 4U);
}

TEST(StopMatcher, RefusesAnEmptyStop) {
  try {
    const StopMatcher matcher({"a", ""});
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("stop[1]"), std::string::npos);
  }
}

// The earliest start, the shortest there, the first listed: by searching the whole text.
std::optional<Match> search(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t best_start = std::string_view::npos;
  std::size_t best = 0;
  for (std::size_t i = 0; i < stops.size(); ++i) {
    const std::size_t start = text.find(stops[i]);
    if (start > best_start || start == std::string_view::npos) continue;
    if (start == best_start && stops[i].size() >= stops[best].size()) continue;
    best_start = start;
    best = i;
  }
  if (best_start == std::string_view::npos) return std::nullopt;
  return Match{best_start, best};
}

// Everything before the first place where a stop may still be completed.
std::size_t search_safe_length(std::string_view text, const std::vector<std::string>& stops) {
  for (std::size_t start = 0; start < text.size(); ++start) {
    for (const std::string& stop : stops) {
      if (stop.starts_with(text.substr(start))) return start;
    }
  }
  return text.size();
}

TEST(StopMatcher, AgreesWithSearchingTheWholeText) {
  static constexpr std::string_view kLetters[] = {"a", "b", "c"};
  test::RandomText random(6);
  int matches = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t i = random.below(4); i > 0; --i) {
      stops.push_back(random.pick(kLetters, 1 + random.below(5)));
    }
    StopMatcher matcher(stops);
    std::string text;
    bool matched = false;
    while (!matched && text.size() < 30) {
      const std::string bytes = random.pick(kLetters, random.below(4));
      text += bytes;
      const std::optional<Match> expected = search(text, stops);
      ASSERT_EQ(matcher.feed(bytes), expected) << text;
      matched = expected.has_value();
      if (!matched) {
        ASSERT_EQ(matcher.safe_length(), search_safe_length(text, stops)) << text;
      }
    }
    if (!matched) continue;
    ++matches;
    ASSERT_EQ(matcher.safe_length(), matcher.text_length());
  }
  EXPECT_GT(matches, 5000);
}

}  // namespace
}  // namespace cupel
