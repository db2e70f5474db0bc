#include "cupel/assay/report.h"

#include <sstream>

#include "assay/cells.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CellRow row(std::string name) {
  CellRow r;
  r.name = std::move(name);
  r.accuracy = 0.9742;
  r.accuracy95 = {0.9641, 0.9815};
  r.strict_accuracy = 0.9735;
  r.invalid_share = 0.001;
  r.truncated_share = 0.0508;
  r.prompt_tokens_per_second = 12345.6;
  r.output_tokens_per_second = 987.4;
  r.seconds = 125;
  return r;
}

AssayReport example() {
  AssayReport report;
  report.title = "wordmath, 1319 items, 8 shots";
  report.cells = {row("tiny-v4-preview/unified"), row("tiny-v4-preview/packed")};
  report.reference = "tiny-v4-preview/unified";
  report.margin = 1;
  auto [ref, cand] = test::single_runs(1319, 40, 40);
  cand.name = "tiny-v4-preview/packed";
  const Comparison c = compare(ref, cand, true);
  report.comparisons = {{.comparison = c, .decision = decide(c, {1, kDecisionZ, kAlpha})}};
  report.records = {{"tiny-v4-preview/unified", "out/a.jsonl"},
                    {"tiny-v4-preview/packed", "out/b.jsonl"}};
  return report;
}

TEST(Report, HasAFixedForm) {
  EXPECT_EQ(render_report(example()), R"(wordmath, 1319 items, 8 shots

cell                          accuracy  95 % interval  strict  invalid  truncated   prompt   output     time
                                     %              %       %        %          %    tok/s    tok/s
tiny-v4-preview/unified          97.42   96.41..98.15   97.35     0.10       5.08    12346      987    2m05s
tiny-v4-preview/packed           97.42   96.41..98.15   97.35     0.10       5.08    12346      987    2m05s

Compared item by item with tiny-v4-preview/unified at a margin of 1 point (loss in points; positive: worse
than the reference; the ends of the 90 % interval decide):
cell                           lost  gained    loss   90 % interval   95 % interval        p  verdict
tiny-v4-preview/packed           40      40    0.00     -1.13..1.13     -1.35..1.35   0.5000  INCONCLUSIVE
    What would decide: about 3783 items (now 1319).
    Deterministic: one pass says all; both bounds carry the luck of the items.
    Exact McNemar test, two-sided: p = 1.

Records (one JSON line for each item and repeat):
  tiny-v4-preview/unified  out/a.jsonl
  tiny-v4-preview/packed   out/b.jsonl
)");
}

std::vector<std::size_t> widths(const std::string& text) {
  std::vector<std::size_t> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t characters = 0;
    for (const char c : line)
      characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    all.push_back(characters);
  }
  return all;
}

TEST(Report, StaysAlignedAndNarrowForLongForeignNames) {
  AssayReport report = example();
  report.cells = {row(std::string(60, 'x') + "/packed"), row("é｜▁/unified"), row("modèle/packed")};
  report.comparisons.push_back(report.comparisons.front());
  report.comparisons[1].comparison.candidate = std::string(200, 'y');
  report.records.clear();
  report.interactions = {{"(" + std::string(40, 'a') + " - " + std::string(40, 'b') + ") - (" +
                              std::string(40, 'c') + " - " + std::string(40, 'd') + ")",
                          -0.001,
                          1.39,
                          {-0.34, 5.11},
                          0.043}};
  const std::string text = render_report(report);
  for (const std::size_t width : widths(text)) EXPECT_LE(width, 110U);
  EXPECT_THAT(text, HasSubstr("\n…xxxxxxxxxxxxxxxxxxxx/packed     97.42"));
  EXPECT_THAT(text, HasSubstr("\nmodèle/packed                    97.42"));
  EXPECT_THAT(text, HasSubstr("over the 2 comparisons together (Holm)"));
  EXPECT_THAT(text, HasSubstr("    0.00 +- 1.39, 95 % -0.34..5.11, one-sided p = 0.0430\n"));
}

TEST(Report, ARowWithNothingAskedHasNoRates) {
  AssayReport report = example();
  report.cells[0].prompt_tokens_per_second = report.cells[0].output_tokens_per_second = 0;
  EXPECT_THAT(render_report(report), HasSubstr("5.08        -        -        -\n"));
}

TEST(Report, WithoutComparisonsThereIsNoVerdict) {
  AssayReport report = example();
  report.comparisons.clear();
  EXPECT_THAT(render_report(report), Not(HasSubstr("verdict")));
}

TEST(CellRow, TakesAccuracyFromOutcomesAndRatesFromTheRun) {
  RunResult result;
  result.score.strict_accuracy = 0.25;
  result.score.truncated_share = 0.125;
  result.wall_seconds = 9;
  result.output_tokens_per_second = 3;
  const CellRow r = cell_row(test::cell("c", {{1}, {1}, {0}, {1}}), result);
  EXPECT_EQ(r.name, "c");
  EXPECT_DOUBLE_EQ(r.accuracy, 0.75);
  EXPECT_DOUBLE_EQ(r.accuracy95.low, wilson(3, 4, 0.95).low);
  EXPECT_DOUBLE_EQ(r.strict_accuracy.value_or(-1), 0.25);
  EXPECT_DOUBLE_EQ(r.truncated_share.value_or(-1), 0.125);
  EXPECT_DOUBLE_EQ(r.seconds, 9);
  EXPECT_DOUBLE_EQ(r.output_tokens_per_second, 3);
}

}  // namespace
}  // namespace cupel
