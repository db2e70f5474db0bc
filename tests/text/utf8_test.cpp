#include "cupel/text/utf8.h"

#include <algorithm>

#include "text/random_text.h"
#include <gtest/gtest.h>
#include <utf8proc.h>

#include "cupel/text/byte_alphabet.h"

namespace cupel {
namespace {

using Kind = Utf8Sequence::Kind;

TEST(Utf8, DecodesEveryCodePointAndKnowsItsUnfinishedStarts) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = test::to_utf8(c);
    const Utf8Sequence whole = decode_utf8(text, 0);
    ASSERT_EQ(whole.kind, Kind::kValid) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ(whole.code_point, c);
    ASSERT_EQ(whole.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const std::string start = text.substr(0, cut);
      const Utf8Sequence part = decode_utf8(start, 0);
      ASSERT_EQ(part.kind, Kind::kUnfinished);
      ASSERT_EQ(part.length, cut);
    }
  }
}

// Together with the test above: a sequence is valid exactly if utf8proc accepts it.
TEST(Utf8, AgreesWithUtf8procOnAllShortByteSequences) {
  for (unsigned value = 0; value < 1U << 24; ++value) {
    const char bytes[] = {static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                          static_cast<char>(value)};
    utf8proc_int32_t code_point = 0;
    const auto length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes), 3, &code_point);
    const Utf8Sequence sequence = decode_utf8({bytes, 3}, 0);
    ASSERT_EQ(sequence.kind == Kind::kValid, length > 0) << std::hex << value;
    if (length > 0) {
      ASSERT_EQ(sequence.length, length);
    }
  }
}

TEST(Utf8, RefusesFourByteFormsOutsideUnicode) {
  EXPECT_EQ(decode_utf8("\xF0\x8F\xBF\xBF", 0).kind, Kind::kInvalid);  // overlong U+FFFF
  EXPECT_EQ(decode_utf8("\xF4\x90\x80\x80", 0).kind, Kind::kInvalid);  // U+110000
  EXPECT_EQ(decode_utf8("\xF5\x80\x80\x80", 0).kind, Kind::kInvalid);
}

TEST(Utf8, ReplacesMaximalSubparts) {
  // The example of the Unicode standard, table 3-8, and surrogates, which have no subpart.
  EXPECT_EQ(to_valid_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                          "b\x80"
                          "c\x80\xBF"
                          "d"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("caf\u00e9 \u4e2d"), "caf\u00e9 \u4e2d");
}

TEST(Utf8, PrefixesDifferOnlyAtBadBytes) {
  EXPECT_EQ(valid_utf8_prefix("\u4e2d\xE4\xB8"), "\u4e2d");
  EXPECT_EQ(complete_utf8_prefix("\u4e2d\xE4\xB8"), "\u4e2d");
  EXPECT_EQ(valid_utf8_prefix("a\xFFz"), "a");
  EXPECT_EQ(complete_utf8_prefix("a\xFFz"), "a\xFFz");
  EXPECT_EQ(complete_utf8_prefix("a\xFF"), "a\xFF");
  EXPECT_EQ(complete_utf8_prefix("\xF0\x9F\x99"), "");
  EXPECT_EQ(complete_utf8_prefix(""), "");
}

// What a stream shows is what the whole text would have shown.
TEST(Utf8, StreamingDoesNotChangeTheReplacement) {
  test::RandomText random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random.below(8); i > 0; --i) {
      text += random.below(2) == 0 ? random.bytes(1) : test::to_utf8(random.code_point());
    }
    text.resize(text.size() - std::min(text.size(), random.below(3)));
    std::string sent;
    std::string held;
    for (const char c : text) {
      held += c;
      const std::size_t ready = complete_utf8_prefix(held).size();
      const std::string released = to_valid_utf8(held.substr(0, ready));
      ASSERT_EQ(valid_utf8_prefix(released), released);
      sent += released;
      held.erase(0, ready);
      ASSERT_LE(held.size(), 3U);
    }
    ASSERT_EQ(sent + to_valid_utf8(held), to_valid_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(ByteAlphabet, IsAOneToOneMapOfAllBytes) {
  std::string all;
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    text += byte_to_alphabet(static_cast<std::uint8_t>(byte));
  }
  EXPECT_EQ(alphabet_to_bytes(text), all);
  EXPECT_EQ(byte_to_alphabet(' '), "\u0120");
  EXPECT_EQ(byte_to_alphabet('\n'), "\u010a");
  EXPECT_EQ(byte_to_alphabet(0x7F), "\u0121");
  EXPECT_EQ(byte_to_alphabet(0xAD), "\u0143");
  EXPECT_EQ(byte_to_alphabet(0xE4), "\u00e4");
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  EXPECT_EQ(alphabet_to_bytes(" "), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\u00ad"), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\u0144"), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\uff5c"), std::nullopt);
  EXPECT_EQ(alphabet_to_bytes("\xFF"), std::nullopt);
}

}  // namespace
}  // namespace cupel
