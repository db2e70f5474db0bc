#include "cupel/text/added_tokens.h"

#include <algorithm>
#include <string>

#include "text/random_text.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(AddedTokenMatcher, FindsNothingWithoutTokens) {
  EXPECT_FALSE(AddedTokenMatcher().find("text", 0).has_value());
}

TEST(AddedTokenMatcher, LeftmostThenLongest) {
  AddedTokenMatcher matcher;
  matcher.add("bcde", 1);
  matcher.add("ab", 2);
  matcher.add("abc", 3);
  const auto match = matcher.find("xabcde", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->id, 3);
  EXPECT_EQ(match->begin, 1U);
  EXPECT_EQ(match->end, 4U);
  EXPECT_EQ(matcher.find("xabcde", 2)->id, 1);
  EXPECT_FALSE(matcher.find("xabcde", 3).has_value());
}

TEST(AddedTokenMatcher, RestartsInsideAFailedMatch) {
  AddedTokenMatcher matcher;
  matcher.add("<think>", 0);
  EXPECT_EQ(matcher.find("<thi<think>", 0)->begin, 4U);
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
    std::optional<AddedTokenMatcher::Match> expected;
    for (std::size_t begin = from; begin < text.size() && !expected; ++begin) {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (text.compare(begin, tokens[i].size(), tokens[i]) != 0) continue;
        const std::size_t end = begin + tokens[i].size();
        if (expected && expected->end >= end) continue;
        expected = AddedTokenMatcher::Match{begin, end, static_cast<std::int32_t>(i)};
      }
    }
    const auto found = matcher.find(text, from);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!found) continue;
    ASSERT_EQ(found->id, expected->id);
    ASSERT_EQ(found->begin, expected->begin);
    ASSERT_EQ(found->end, expected->end);
  }
}

}  // namespace
}  // namespace cupel
