#include "cupel/assay/report/markdown.h"

#include "assay/report/example.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cupel/assay/report/printable.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Markdown, VerdictsFirst) {
  const std::string text = render_markdown(test::report_on(test::changed(100, 12, 1)));
  EXPECT_THAT(text, StartsWith("## ❌ REGRESSION\n\nwordmath, an example\n"));
  EXPECT_THAT(text, HasSubstr("| ❌ REGRESSION | model/unified | 11.00 | "));
  EXPECT_THAT(text, HasSubstr("| model/packed | 1 | 99.00 | "));
  EXPECT_THAT(text, HasSubstr("### Items that flipped: model/unified (12 lost, 1 gained)\n"));
  EXPECT_THAT(text, HasSubstr("<summary>Item 0, lost, texts part at token 3, near-tie: yes"));
  EXPECT_THAT(text, HasSubstr("\n```text\n0 + 3 = \n```\n"));
  EXPECT_THAT(text, Not(HasSubstr("left out")));
}

// 100,000 flips in two comparisons: below 1 MiB, both are shown, and the rest is counted.
TEST(Markdown, StaysWithinALimitWhateverFlipped) {
  AssayReport report = test::report_on(test::changed(100, 12, 1));
  report.comparisons.push_back(report.comparisons.front());
  report.comparisons[1].comparison.candidate = "model/reference";
  for (ComparisonRow& row : report.comparisons) {
    row.flips.resize(1);
    row.flips.resize(50000, row.flips.front());
  }
  const std::string text = render_markdown(report);
  EXPECT_LE(text.size(), kMarkdownLimit);
  EXPECT_GT(text.size(), kMarkdownLimit * 9 / 10);
  EXPECT_THAT(text, HasSubstr("### Items that flipped: model/reference"));
  std::size_t shown = 0;
  for (std::size_t at = 0; (at = text.find("<details>", at)) != std::string::npos; ++at) ++shown;
  EXPECT_THAT(text, HasSubstr(fmt::format("\n{} flipped items left out; the JSON report and the "
                                          "records have them all, to stay within 1024 KiB.\n",
                                          100000 - shown)));
}

TEST(Markdown, EveryPartIsCutWhereTheLimitIsSmall) {
  std::vector<test::Answers> cells = test::changed(20, 3, 1);
  for (int i = 0; i < 200; ++i) {
    cells.push_back(cells[1]);
    cells.back().cell = fmt::format("candidate {}", i);
  }
  const std::string text = render_markdown(test::report_on(cells), 8192);
  EXPECT_LE(text.size(), 8192U);
  EXPECT_THAT(text, HasSubstr("comparisons left out"));
  EXPECT_THAT(text, HasSubstr("cells left out"));
  EXPECT_THAT(text, HasSubstr("flipped items left out"));
}

TEST(Markdown, NamesAndTextsCannotChangeIt) {
  for (const std::string& hostile : test::hostile_texts()) {
    std::vector<test::Answers> cells = test::changed(10, 2, 1);
    cells[1].cell = hostile;
    cells[1].extra = hostile;
    const std::string text = render_markdown(test::report_on(cells));
    EXPECT_EQ(valid_utf8_prefix(text).size(), text.size());
    // Outside of fences no tag but ours, no row but ours.
    bool fenced = false;
    std::string fence;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!fenced && line.starts_with("```")) {
        fence = line.substr(0, line.find_first_not_of('`'));
        fenced = true;
      } else if (fenced && line == fence) {
        fenced = false;
      } else if (!fenced) {
        EXPECT_THAT(line, Not(HasSubstr("<script")));
        EXPECT_THAT(line, Not(HasSubstr("<img")));
        EXPECT_THAT(line, Not(StartsWith("# ")));
      }
    }
    EXPECT_FALSE(fenced);
  }
}

RC_GTEST_PROP(Markdown, TextIsOneLineWithoutMarkup, (const std::vector<std::uint8_t>& bytes)) {
  const std::string text = markdown_text(std::string(bytes.begin(), bytes.end()));
  RC_ASSERT(text.find_first_of("\n<>|`*_[]") == std::string::npos);
  RC_ASSERT(printable(text) == text);
}

RC_GTEST_PROP(Markdown, NoTextEndsItsFence, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("`", "```", "\n", "a", "````"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const std::string block = markdown_fence(text);
  const std::string fence = block.substr(1, block.find("text\n") - 1);
  RC_ASSERT(text.find(fence) == std::string::npos);
}

}  // namespace
}  // namespace cupel
