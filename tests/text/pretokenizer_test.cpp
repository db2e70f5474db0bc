#include "cupel/text/pretokenizer.h"

#include <fstream>
#include <string>

#include "text/random_text.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The texts of the spec's check vectors: no token of the real vocabulary crosses these boundaries.
TEST(Pretokenizer, SplitsTheCheckVectors) {
  EXPECT_THAT(pretokenize(""), IsEmpty());
  EXPECT_THAT(pretokenize(" "), ElementsAre(" "));
  EXPECT_THAT(pretokenize("\n\n"), ElementsAre("\n\n"));
  EXPECT_THAT(pretokenize("\r\n"), ElementsAre("\r\n"));
  EXPECT_THAT(pretokenize(" \n "), ElementsAre(" \n", " "));
  EXPECT_THAT(pretokenize("The capital of France is"),
              ElementsAre("The", " capital", " of", " France", " is"));
  EXPECT_THAT(pretokenize("Hello, world!"), ElementsAre("Hello", ",", " world", "!"));
  EXPECT_THAT(pretokenize("hello world  "), ElementsAre("hello", " world", "  "));
  EXPECT_THAT(pretokenize("   leading spaces"), ElementsAre("  ", " leading", " spaces"));
  EXPECT_THAT(pretokenize("a  b   c    d"), ElementsAre("a", " ", " b", "  ", " c", "   ", " d"));
  EXPECT_THAT(pretokenize("1234567890"), ElementsAre("123", "456", "789", "0"));
  EXPECT_THAT(pretokenize("3.14159"), ElementsAre("3", ".", "141", "59"));
  EXPECT_THAT(pretokenize("v1.2.3-rc4"), ElementsAre("v", "1", ".", "2", ".", "3", "-rc", "4"));
  EXPECT_THAT(pretokenize("x->y"), ElementsAre("x", "->", "y"));
  EXPECT_THAT(pretokenize("#include <stdio.h>"), ElementsAre("#include", " <", "stdio", ".h", ">"));
  EXPECT_THAT(pretokenize("obj.attr"), ElementsAre("obj", ".attr"));
  EXPECT_THAT(pretokenize("中文123英文"), ElementsAre("中文", "123", "英文"));
  EXPECT_THAT(pretokenize("🙂"), ElementsAre("🙂"));
  EXPECT_THAT(pretokenize("Привет мир"), ElementsAre("Привет", " мир"));
  EXPECT_THAT(pretokenize("..."), ElementsAre("..."));
}

TEST(Pretokenizer, TakesTheFirstAlternativeThatMatches) {
  EXPECT_THAT(pretokenize("!abcé"), ElementsAre("!abc", "é"));    // A stops at ASCII
  EXPECT_THAT(pretokenize("!éa"), ElementsAre("!", "éa"));        // not A
  EXPECT_THAT(pretokenize("¡abc"), ElementsAre("¡", "abc"));      // not ASCII
  EXPECT_THAT(pretokenize(" !abc"), ElementsAre(" !", "abc"));    // C at the space comes first
  EXPECT_THAT(pretokenize("\tabc"), ElementsAre("\tabc"));        // B takes any one character
  EXPECT_THAT(pretokenize("\t!abc"), ElementsAre("\t", "!abc"));  // C takes a space only
  EXPECT_THAT(pretokenize("!\r\n\n x"), ElementsAre("!\r\n\n", " x"));
  EXPECT_THAT(pretokenize(" \t\n  \n  x"), ElementsAre(" \t\n  \n", " ", " x"));
  EXPECT_THAT(pretokenize("\u0301a"), ElementsAre("\u0301a"));  // a mark alone begins a word
}

TEST(Pretokenizer, LookAheadEndsWithThePiece) {
  // The digits are a piece of the first split, so the spaces before them end their own piece.
  EXPECT_THAT(pretokenize("a  1"), ElementsAre("a", "  ", "1"));
  EXPECT_THAT(pretokenize("a  中"), ElementsAre("a", "  ", "中"));
  EXPECT_THAT(pretokenize("a  b"), ElementsAre("a", " ", " b"));
}

TEST(Pretokenizer, SplitsKanaRunsAtTheirSymbols) {
  EXPECT_THAT(pretokenize("xアー・ア"), ElementsAre("x", "アー", "・", "ア"));
}

TEST(Pretokenizer, KeepsCharactersWithoutAnAlternativeTogether) {
  EXPECT_THAT(pretokenize("\x01\x02"), ElementsAre("\x01\x02"));
  EXPECT_THAT(pretokenize("\x01\x02z"), ElementsAre("\x01", "\x02z"));
  // U+180E is no white space since Unicode 6.3.
  EXPECT_THAT(pretokenize("\u180e\u180e"), ElementsAre("\u180e\u180e"));
}

TEST(Pretokenizer, InvalidBytesStandAlone) {
  EXPECT_THAT(pretokenize("a\xFF\xFE"
                          "b"),
              ElementsAre("a", "\xFF", "\xFE", "b"));
  EXPECT_THAT(pretokenize("\xE4\xB8"), ElementsAre("\xE4", "\xB8"));              // truncated
  EXPECT_THAT(pretokenize("\xC0\xA0"), ElementsAre("\xC0", "\xA0"));              // overlong
  EXPECT_THAT(pretokenize("\xED\xA0\x80"), ElementsAre("\xED", "\xA0", "\x80"));  // surrogate
  EXPECT_THAT(pretokenize("a  \xFF"), ElementsAre("a", "  ", "\xFF"));
  EXPECT_THAT(pretokenize("12\xFF"
                          "34"),
              ElementsAre("12", "\xFF", "34"));
}

TEST(Pretokenizer, PiecesJoinToTheText) {
  test::RandomText random(2);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random.below(12); i > 0; --i) {
      text += random.below(3) == 0 ? random.bytes(1) : test::to_utf8(random.code_point());
    }
    std::string joined;
    for (const std::string_view piece : pretokenize(text)) {
      ASSERT_FALSE(piece.empty());
      joined += piece;
    }
    ASSERT_EQ(joined, text);
  }
}

TEST(Pretokenizer, MatchesTheGoldenPieces) {
  std::ifstream file(CUPEL_SOURCE_DIR "/tests/text/encodings.golden.jsonl");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto golden = nlohmann::json::parse(line);
    const auto text = golden.at("text").get<std::string>();
    std::vector<std::size_t> lengths;
    for (const std::string_view piece : pretokenize(text)) lengths.push_back(piece.size());
    EXPECT_EQ(lengths, golden.at("pieces").get<std::vector<std::size_t>>()) << line;
  }
  EXPECT_EQ(lines, 400);
}

}  // namespace
}  // namespace cupel
