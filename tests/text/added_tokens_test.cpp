#include "cupel/text/added_tokens.h"

#include <algorithm>
#include <string>

#include "text/random_text.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using Match = AddedTokenMatcher::Match;

// The match, or one with id -1.
Match find(const AddedTokenMatcher& matcher, std::string_view text, std::size_t from) {
  Match match;
  const bool found = matcher.find(text, from, match);
  EXPECT_EQ(found, match.id >= 0);
  return match;
}

TEST(AddedTokenMatcher, FindsNothingWithoutTokens) {
  EXPECT_EQ(find(AddedTokenMatcher(), "text", 0).id, -1);
}

TEST(AddedTokenMatcher, LeftmostThenLongest) {
  AddedTokenMatcher matcher;
  matcher.add("bcde", 1);
  matcher.add("ab", 2);
  matcher.add("abc", 3);
  const Match match = find(matcher, "xabcde", 0);
  EXPECT_EQ(match.id, 3);
  EXPECT_EQ(match.begin, 1U);
  EXPECT_EQ(match.end, 4U);
  EXPECT_EQ(find(matcher, "xabcde", 2).id, 1);
  EXPECT_EQ(find(matcher, "xabcde", 3).id, -1);
}

TEST(AddedTokenMatcher, RestartsInsideAFailedMatch) {
  AddedTokenMatcher matcher;
  matcher.add("<think>", 0);
  EXPECT_EQ(find(matcher, "<thi<think>", 0).begin, 4U);
}

TEST(AddedTokenMatcher, AgreesWithTryingEveryToken) {
  static constexpr std::string_view kLetters[] = {"a", "b", "\xEF"};
  test::RandomText random(5);
  for (int round = 0; round < 5000; ++round) {
    AddedTokenMatcher matcher;
    std::vector<std::string> tokens;
    for (std::size_t i = 1 + random.below(6); i > 0; --i) {
      const std::string token = random.pick(kLetters, 1 + random.below(5));
      if (std::find(tokens.begin(), tokens.end(), token) != tokens.end()) continue;
      matcher.add(token, static_cast<std::int32_t>(tokens.size()));
      tokens.push_back(token);
    }
    const std::string text = random.pick(kLetters, random.below(16));
    const std::size_t from = random.below(text.size() + 1);
    Match expected;
    for (std::size_t begin = from; begin < text.size() && expected.id < 0; ++begin) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::size_t end = begin + tokens[i].size();
        if (text.compare(begin, tokens[i].size(), tokens[i]) != 0 || end <= expected.end) continue;
        expected = {begin, end, static_cast<std::int32_t>(i)};
      }
    }
    const Match found = find(matcher, text, from);
    ASSERT_EQ(found.id, expected.id) << text;
    ASSERT_EQ(found.begin, expected.begin);
    ASSERT_EQ(found.end, expected.end);
  }
}

}  // namespace
}  // namespace cupel
