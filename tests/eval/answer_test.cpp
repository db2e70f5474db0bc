#include "cupel/eval/answer.h"

#include <string>

#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(LastDigits, FollowsTheLenientRule) {
  EXPECT_EQ(last_digits("#### 18"), 18);
  EXPECT_EQ(last_digits("first 7, then 1,319 eggs."), 1319);
  EXPECT_EQ(last_digits("$3.50"), 50);
  EXPECT_EQ(last_digits("-4"), 4);
  EXPECT_EQ(last_digits("7 or 8?"), 8);
  EXPECT_EQ(last_digits("1,2"), 12);
  EXPECT_EQ(last_digits("007"), 7);
  EXPECT_EQ(last_digits("no 5 here\xff"), 5);
}

TEST(LastDigits, IsInvalidOnlyWithoutDigits) {
  EXPECT_EQ(last_digits(""), std::nullopt);
  EXPECT_EQ(last_digits("four, five"), std::nullopt);
  EXPECT_EQ(last_digits("\xd9\xa3"), std::nullopt);  // ARABIC-INDIC DIGIT THREE is not ASCII
  EXPECT_EQ(last_digits("0"), 0);
}

TEST(LastDigits, LongRunsSaturate) {
  EXPECT_EQ(last_digits("9223372036854775806"), INT64_MAX - 1);
  EXPECT_EQ(last_digits("9223372036854775808"), kLargestAnswer);
  EXPECT_EQ(last_digits(std::string(5000, '9')), kLargestAnswer);
  EXPECT_EQ(last_digits(std::string(5000, '9') + " 3"), 3);
}

TEST(MarkedAnswer, ReadsTheLastMarkedLine) {
  EXPECT_EQ(marked_answer("2 + 2 = 4.\n#### 4"), 4);
  EXPECT_EQ(marked_answer("#### 4\n#### -1,005 \nand 7 more"), -1005);
  EXPECT_EQ(marked_answer("#### +3\r\n"), 3);
  EXPECT_EQ(marked_answer("#### 99999999999999999999"), kLargestAnswer);
}

TEST(MarkedAnswer, RefusesAnythingElse) {
  for (const char* text : {"", "4", "####4", "#### ", "#### 4 eggs", "#### $4", "#### 4.",
                           "#### 4.0", "#### -", "#### ,4", "so #### 4", "#### 4\n#### four"}) {
    EXPECT_EQ(marked_answer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cupel
