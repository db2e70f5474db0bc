#include "cupel/text/byte_pair_encoder.h"

#include <set>
#include <string>
#include <utility>

#include "text/random_text.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using Merge = BytePairEncoder::Merge;
using testing::ElementsAre;

std::array<std::int32_t, 256> identity() {
  std::array<std::int32_t, 256> ids{};
  for (int byte = 0; byte < 256; ++byte) ids[static_cast<std::size_t>(byte)] = byte;
  return ids;
}

std::vector<std::int32_t> encode(const std::vector<Merge>& merges, std::string_view piece) {
  BytePairEncoder::Workspace workspace;
  std::vector<std::int32_t> ids;
  BytePairEncoder(identity(), merges).encode(piece, workspace, ids);
  return ids;
}

// The definition: the lowest rank anywhere, its leftmost place, again and again.
std::vector<std::int32_t> encode_by_definition(const std::vector<Merge>& merges,
                                               std::string_view piece) {
  std::vector<std::int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<std::uint8_t>(c));
  for (bool merged = true; merged;) {
    merged = false;
    for (const Merge& merge : merges) {
      for (std::size_t i = 0; i + 1 < ids.size() && !merged; ++i) {
        if (ids[i] != merge.left || ids[i + 1] != merge.right) continue;
        ids[i] = merge.result;
        ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  return ids;
}

TEST(BytePairEncoder, LowestRankFirst) {
  // "bc" outranks "ab", so "abc" keeps its a.
  EXPECT_THAT(encode({{'b', 'c', 300}, {'a', 'b', 301}}, "abc"), ElementsAre('a', 300));
  EXPECT_THAT(encode({{'a', 'b', 301}, {'b', 'c', 300}}, "abc"), ElementsAre(301, 'c'));
}

TEST(BytePairEncoder, LeftmostOfEqualRank) {
  EXPECT_THAT(encode({{'a', 'a', 300}}, "aaa"), ElementsAre(300, 'a'));
  EXPECT_THAT(encode({{'a', 'a', 300}, {300, 300, 301}}, "aaaaaaa"), ElementsAre(301, 300, 'a'));
}

TEST(BytePairEncoder, AMergeOpensOnesOfLowerRank) {
  // "abc" (rank 0) exists only once "ab" (rank 2) is made; then it precedes "cd" (rank 1)... which
  // has been merged before.
  EXPECT_THAT(encode({{300, 'c', 301}, {'c', 'd', 302}, {'a', 'b', 300}}, "abcd"),
              ElementsAre(300, 302));
  EXPECT_THAT(encode({{300, 'c', 301}, {'a', 'b', 300}, {'c', 'd', 302}}, "abcd"),
              ElementsAre(301, 'd'));
}

TEST(BytePairEncoder, EmptyAndSingle) {
  EXPECT_THAT(encode({}, ""), testing::IsEmpty());
  EXPECT_THAT(encode({}, "\xFF"), ElementsAre(255));
}

TEST(BytePairEncoder, FollowsTheDefinitionOnRandomMerges) {
  test::RandomText random(4);
  static constexpr std::string_view kLetters[] = {"a", "b", "c"};
  for (int round = 0; round < 3000; ++round) {
    // Tokens in the order they are made, so that later merges build on earlier ones; then the
    // ranks are shuffled. Ids are unique by text, as in a real vocabulary.
    std::vector<std::string> texts{"a", "b", "c"};
    std::vector<std::int32_t> ids{'a', 'b', 'c'};
    std::vector<Merge> merges;
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (int i = 0; i < 12; ++i) {
      const std::size_t left = random.below(texts.size());
      const std::size_t right = random.below(texts.size());
      if (!pairs.emplace(ids[left], ids[right]).second) continue;
      const std::string text = texts[left] + texts[right];
      std::size_t known = 0;
      while (known < texts.size() && texts[known] != text) ++known;
      if (known == texts.size()) {
        texts.push_back(text);
        ids.push_back(300 + i);
      }
      merges.push_back({ids[left], ids[right], ids[known]});
    }
    for (std::size_t i = merges.size(); i > 1; --i)
      std::swap(merges[i - 1], merges[random.below(i)]);
    const std::string piece = random.pick(kLetters, random.below(40));
    ASSERT_EQ(encode(merges, piece), encode_by_definition(merges, piece)) << piece;
  }
}

// Quadratic work would not end within the test's time limit.
TEST(BytePairEncoder, AMegabyteInOnePiece) {
  const std::size_t length = std::size_t{1} << 20;
  const std::vector<Merge> merges{
      {'a', 'a', 300}, {300, 300, 301}, {301, 301, 302}, {302, 302, 303}, {'a', 'b', 304}};
  EXPECT_EQ(encode(merges, std::string(length, 'a')), std::vector<std::int32_t>(length / 16, 303));
  EXPECT_EQ(encode({{'x', 'x', 300}}, std::string(length, 'b')),
            std::vector<std::int32_t>(length, 'b'));
}

}  // namespace
}  // namespace cupel
