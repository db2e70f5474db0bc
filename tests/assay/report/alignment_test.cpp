#include "cupel/assay/report/alignment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cupel/assay/report/printable.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

TEST(CommonPrefix, EndsBetweenCharacters) {
  EXPECT_EQ(common_prefix("", ""), 0U);
  EXPECT_EQ(common_prefix("abc", "abc"), 3U);
  EXPECT_EQ(common_prefix("abc", "abd"), 2U);
  EXPECT_EQ(common_prefix("abc", "ab"), 2U);
  EXPECT_EQ(common_prefix("aé", "aè"), 1U);  // their first bytes are the same
  EXPECT_EQ(common_prefix("a中", "a乭"), 1U);
  // A mark belongs to the letter before.
  EXPECT_EQ(common_prefix("ae", "ae\u0301"), 1U);
  EXPECT_EQ(common_prefix("ae\u0301", "ae\u0302"), 1U);
}

TEST(FirstDifferentToken, OrTheEndOfTheShorter) {
  const std::vector<std::int32_t> a = {1, 2, 3};
  EXPECT_EQ(first_different_token(a, a), std::nullopt);
  EXPECT_EQ(first_different_token(a, std::vector<std::int32_t>{1, 5, 3}), 1);
  EXPECT_EQ(first_different_token(a, std::vector<std::int32_t>{1, 2}), 2);
  EXPECT_EQ(first_different_token({}, a), 0);
}

TEST(Align, ShowsAnExcerptAroundTheDifference) {
  const std::string common(1000, 'c');
  const Alignment a = align(common + "1" + std::string(2000, 'x'), common + "2");
  EXPECT_FALSE(a.same);
  EXPECT_EQ(a.offset, 1000U);
  EXPECT_EQ(a.before, std::string(kBytesBefore, 'c'));
  EXPECT_TRUE(a.before_cut);
  EXPECT_EQ(a.reference, "1" + std::string(kBytesAfter - 1, 'x'));
  EXPECT_TRUE(a.reference_cut);
  EXPECT_EQ(a.candidate, "2");
  EXPECT_FALSE(a.candidate_cut);
  EXPECT_TRUE(align("same", "same").same);
}

// Texts of few letters, so that they have much in common; some of several bytes, some marks.
rc::Gen<std::string> texts() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "a", "b", "é", "è", "中", "乭", "\u0301", "🧪", "\n", "\xff", "\xe4\xb8")),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const std::string& part : parts) text += part;
        return text;
      });
}

RC_GTEST_PROP(Align, TheFirstDifferenceIsRight, ()) {
  const std::string shared = *texts();
  const std::string x = printable(shared + *texts());
  const std::string y = printable(shared + *texts());
  const Alignment a = align(x, y);
  RC_ASSERT(x.substr(0, a.offset) == y.substr(0, a.offset));
  RC_ASSERT(a.same == (x == y));
  // All parts are whole characters.
  for (const std::string& part : {a.before, a.reference, a.candidate}) {
    RC_ASSERT(valid_utf8_prefix(part).size() == part.size());
  }
  if (!a.reference_cut) RC_ASSERT(x == x.substr(0, a.offset) + a.reference);
  if (!a.candidate_cut) RC_ASSERT(y == y.substr(0, a.offset) + a.candidate);
  if (!a.before_cut) RC_ASSERT(a.before == x.substr(0, a.offset));
  // And the next characters do differ.
  if (!a.same) RC_ASSERT(first_character(a.reference) != first_character(a.candidate));
}

RC_GTEST_PROP(Align, TakesAnyBytes,
              (const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b)) {
  const Alignment x = align(std::string(a.begin(), a.end()), std::string(b.begin(), b.end()));
  for (const std::string& part : {x.before, x.reference, x.candidate}) {
    RC_ASSERT(printable(part) == part);
  }
}

}  // namespace
}  // namespace cupel
