#include "cupel/text/tokenizer.h"

#include <cstring>
#include <fstream>
#include <thread>

#include "text/random_text.h"
#include "text/small_tokenizer.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/file.h"

namespace cupel {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

using Ids = std::vector<std::int32_t>;

const std::string kRoot = CUPEL_SOURCE_DIR;

const Tokenizer& bundled() {
  static const Tokenizer tokenizer =
      Tokenizer::load(kRoot + "/models/tiny-v4-preview/tokenizer.json");
  return tokenizer;
}

Tokenizer make(const json& file) {
  return {file.dump(), "tokenizer.json"};
}

// An I64 vector of a safetensors file: u64 length of the header, JSON header, data.
Ids read_golden_ids(const std::string& tensor) {
  const std::string file = read_file(kRoot + "/tests/golden/preview.golden.safetensors");
  std::uint64_t header_length = 0;
  std::memcpy(&header_length, file.data(), 8);
  const json header = json::parse(file.substr(8, header_length));
  EXPECT_EQ(header.at(tensor).at("dtype"), "I64");
  const std::size_t begin = header.at(tensor).at("data_offsets").at(0);
  const std::size_t end = header.at(tensor).at("data_offsets").at(1);
  std::vector<std::int64_t> values((end - begin) / 8);
  std::memcpy(values.data(), file.data() + 8 + header_length + begin, end - begin);
  return {values.begin(), values.end()};
}

std::vector<json> read_lines(const std::string& path) {
  std::vector<json> lines;
  std::ifstream file(kRoot + path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(Tokenizer, EncodesTheFewShotPromptOfTheGolden) {
  std::string prompt = "<｜begin▁of▁sentence｜>";
  for (const json& shot : read_lines("/data/wordmath/shots.jsonl")) {
    prompt += "Question: " + shot.at("question").get<std::string>() +
              "\nAnswer: " + shot.at("answer").get<std::string>() + "\n\n";
  }
  const json item = read_lines("/data/wordmath/test.jsonl").at(1);
  prompt += "Question: " + item.at("question").get<std::string>() + "\nAnswer:";
  const Ids golden = read_golden_ids("fewshot_ids");
  EXPECT_EQ(golden.size(), 752U);
  EXPECT_EQ(bundled().encode(prompt), golden);
}

TEST(Tokenizer, DecodingTheGoldenTextEncodesToItsIds) {
  const Ids golden = read_golden_ids("text_ids");
  EXPECT_EQ(golden.size(), 1200U);
  EXPECT_EQ(bundled().encode(bundled().decode(golden)), golden);
}

TEST(Tokenizer, MatchesTheGoldenEncodings) {
  const auto lines = read_lines("/tests/text/encodings.golden.jsonl");
  EXPECT_EQ(lines.size(), 400U);
  for (const json& golden : lines) {
    EXPECT_EQ(bundled().encode(golden.at("text").get<std::string>()), golden.at("ids").get<Ids>())
        << golden;
  }
}

TEST(Tokenizer, DecodeInvertsEncode) {
  static constexpr std::string_view kParts[] = {"<think>", "</think>", "<｜User｜>", "<thi", "｜",
                                                " the",    "\n\n",     "123",        "中"};
  test::RandomText random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random.below(20); i > 0; --i) {
      switch (random.below(3)) {
        case 0:
          text += random.bytes(1);
          break;
        case 1:
          text += test::to_utf8(random.code_point());
          break;
        default:
          text += random.pick(kParts, 1);
      }
    }
    ASSERT_EQ(bundled().decode(bundled().encode(text)), text) << testing::PrintToString(text);
  }
}

TEST(Tokenizer, EncodesInvalidBytesOneByOne) {
  const Tokenizer tokenizer = make(test::small_tokenizer({{"\u00e4", "\u00b8"}}));
  EXPECT_THAT(tokenizer.encode("\xE4\xB8"), ElementsAre(0xE4, 0xB8));  // truncated: no merge
  EXPECT_THAT(tokenizer.encode("\xE4\xB8\xAD"), ElementsAre(256, 0xAD));
}

TEST(Tokenizer, MergesDoNotCrossPieces) {
  const Tokenizer tokenizer = make(test::small_tokenizer({{"a", "!"}, {"1", "a"}, {"a", "b"}}));
  EXPECT_THAT(tokenizer.encode("a!"), ElementsAre('a', '!'));
  EXPECT_THAT(tokenizer.encode("1ab"), ElementsAre('1', 258));
}

TEST(Tokenizer, IgnoreMergesTakesAWholePieceAtOnce) {
  // "abc" is reached by no merge.
  json file = test::small_tokenizer({{"b", "c"}});
  file["model"]["vocab"]["abc"] = 300;
  EXPECT_THAT(make(file).encode("abc abc"), ElementsAre('a', 256, ' ', 'a', 256));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(make(file).encode("abc abc"), ElementsAre(300, ' ', 'a', 256));
}

TEST(Tokenizer, CutsAddedTokensBeforeAnythingElse) {
  json file = test::small_tokenizer({{"a", "b"}});
  file["added_tokens"] = {test::added_token(300, "b<"), test::added_token(301, "b<x>"),
                          test::added_token(302, "<x>y")};
  const Tokenizer tokenizer = make(file);
  // The leftmost is taken though it breaks "ab" and "<x>y", and the longest of those.
  EXPECT_THAT(tokenizer.encode("ab<x>y"), ElementsAre('a', 301, 'y'));
  EXPECT_THAT(tokenizer.encode("ab<x"), ElementsAre('a', 300, 'x'));
  EXPECT_THAT(tokenizer.encode("b<b<"), ElementsAre(300, 300));
  // The text before an added token ends there: two spaces stay together.
  EXPECT_THAT(make(test::small_tokenizer({{"\u0120", "\u0120"}})).encode("  x"),
              ElementsAre(' ', ' ', 'x'));
  json spaces = test::small_tokenizer({{"\u0120", "\u0120"}});
  spaces["added_tokens"].push_back(test::added_token('x', "x"));
  EXPECT_THAT(make(spaces).encode("  x"), ElementsAre(256, 'x'));
}

TEST(Tokenizer, NormalizedTokensYieldToTheOthers) {
  json file = test::small_tokenizer();
  file["added_tokens"] = {test::added_token(300, "ab", true), test::added_token(301, "bc", false)};
  EXPECT_THAT(make(file).encode("abc"), ElementsAre('a', 301));
  EXPECT_THAT(make(file).encode("ab"), ElementsAre(300));
}

TEST(Tokenizer, KnowsItsIds) {
  json file = test::small_tokenizer({{"a", "b"}});
  file["model"]["vocab"]["not | alphabet"] = 270;
  file["added_tokens"] = {test::added_token(300, "<\u0120>"), test::added_token(256, "ab"),
                          test::added_token(2147483646, "last")};
  const Tokenizer tokenizer = make(file);
  EXPECT_EQ(tokenizer.id_limit(), 2147483647);
  for (const std::int32_t id : {0, 255, 256, 270, 300, 2147483646}) {
    EXPECT_TRUE(tokenizer.has_token(id)) << id;
  }
  for (const std::int32_t id : {-1, -2147483647 - 1, 257, 269, 299, 301, 2147483647}) {
    EXPECT_FALSE(tokenizer.has_token(id)) << id;
    EXPECT_FALSE(tokenizer.is_added(id)) << id;
    EXPECT_EQ(tokenizer.token_bytes(id), "") << id;
  }
  EXPECT_TRUE(tokenizer.is_added(300));
  EXPECT_TRUE(tokenizer.is_added(256));
  EXPECT_FALSE(tokenizer.is_added(255));
  EXPECT_EQ(tokenizer.token_bytes(300), "<\u0120>");  // an added token is its text
  EXPECT_EQ(tokenizer.token_bytes(270), "not | alphabet");
  EXPECT_EQ(tokenizer.token_bytes(' '), " ");
  EXPECT_EQ(tokenizer.decode(Ids{'x', -7, 300, 99999, 256}), "x<\u0120>ab");
  EXPECT_THAT(tokenizer.decode({}), IsEmpty());
}

TEST(Tokenizer, BundledVocabulary) {
  EXPECT_EQ(bundled().id_limit(), 639);
  EXPECT_TRUE(bundled().is_added(9));
  EXPECT_FALSE(bundled().is_added(10));
  EXPECT_FALSE(bundled().has_token(639));  // rows 639 to 767 of the embedding
  EXPECT_EQ(bundled().token_bytes(0), "<｜begin▁of▁sentence｜>");
}

// Quadratic work would not end within the test's time limit.
TEST(Tokenizer, EncodesAMegabyteOfOneKind) {
  for (const std::string_view unit : {"a", " ", "\n", "1", "!", "中", "\xFF", "<｜User", "\x01"}) {
    std::string text;
    while (text.size() < std::size_t{1} << 20) text += unit;
    EXPECT_EQ(bundled().decode(bundled().encode(text)), text) << unit;
  }
}

TEST(Tokenizer, EncodesInSeveralThreads) {
  const std::string text = bundled().decode(read_golden_ids("text_ids"));
  const Ids expected = bundled().encode(text);
  std::vector<int> wrong(4, -1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      wrong[t] = 0;
      for (int round = 0; round < 50; ++round) wrong[t] += bundled().encode(text) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
}  // namespace cupel
