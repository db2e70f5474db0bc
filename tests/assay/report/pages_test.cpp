// The forms that are trees: JUnit XML and HTML.
#include <algorithm>

#include "assay/report/example.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include "cupel/assay/report/chart.h"
#include "cupel/assay/report/html.h"
#include "cupel/assay/report/junit.h"
#include "cupel/assay/report/markdown.h"
#include "cupel/assay/report/printable.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using testing::HasSubstr;
using testing::Not;

// Reads it as XML, which is stricter than HTML: nothing is left open.
pugi::xml_document parsed(const std::string& text) {
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_doctype | pugi::parse_ws_pcdata,
      pugi::encoding_utf8);
  EXPECT_TRUE(result) << result.description() << " at " << result.offset;
  return document;
}

// PASS, REGRESSION and INCONCLUSIVE.
AssayReport three_verdicts() {
  std::vector<test::Answers> cells = test::changed(200, 30, 0);
  test::Answers same = cells[0];
  same.cell = "model/same";
  test::Answers few = cells[0];
  few.cell = "model/few";
  few.correct[5] = few.correct[6] = few.correct[7] = {0};
  cells.push_back(same);
  cells.push_back(few);
  return test::report_on(cells, 2);
}

// A gating probe makes the exit code: no form may show less.
TEST(Probes, AGatingOneDecidesInEveryForm) {
  std::vector<test::Answers> cells = test::changed(200, 0, 0);
  AssayReport report = test::report_on(cells, 2);
  ASSERT_EQ(overall_verdict(report), Verdict::kPass);
  report.probes = {test::probe_of(ProbeKind::kPhase, Verdict::kRegression),
                   test::probe_of(ProbeKind::kRepeatability, std::nullopt)};
  EXPECT_EQ(overall_verdict(report), Verdict::kRegression);

  const pugi::xml_document junit = parsed(render_junit(report));
  const pugi::xml_node suite = junit.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("tests").value(), "2");  // repeatability is none
  EXPECT_STREQ(suite.attribute("failures").value(), "1");
  EXPECT_THAT(suite.last_child().child("failure").attribute("message").value(),
              HasSubstr("phase: 5.00, bounds at 5 % each side 3.00 to 7.00, p = 0.0020: "
                        "REGRESSION at a margin of 1"));

  const std::string page = render_html(report);
  EXPECT_THAT(page, HasSubstr("id=\"probes\""));
  EXPECT_THAT(page, HasSubstr("1 pass, 1 regressed"));
  EXPECT_THAT(page, HasSubstr("not judged"));
  const std::string markdown = render_markdown(report);
  EXPECT_THAT(markdown, HasSubstr("## ❌ REGRESSION"));
  EXPECT_THAT(markdown, HasSubstr("never judged"));
}

TEST(JUnit, AVerdictIsNeverMistakenForAnother) {
  const pugi::xml_document document = parsed(render_junit(three_verdicts()));
  const pugi::xml_node suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("tests").value(), "3");
  EXPECT_STREQ(suite.attribute("failures").value(), "1");
  EXPECT_STREQ(suite.attribute("skipped").value(), "1");
  EXPECT_STREQ(suite.attribute("timestamp").value(), "2026-09-01T04:00:00");
  std::vector<pugi::xml_node> tests(suite.children("testcase").begin(),
                                    suite.children("testcase").end());
  ASSERT_EQ(tests.size(), 3U);
  EXPECT_STREQ(tests[0].attribute("name").value(), "model/unified against model/packed");
  EXPECT_THAT(tests[0].child("failure").attribute("message").value(),
              testing::StartsWith("REGRESSION: loss 15.00 points"));
  EXPECT_FALSE(tests[0].child("skipped"));
  EXPECT_FALSE(tests[1].child("failure"));
  EXPECT_FALSE(tests[1].child("skipped"));
  EXPECT_THAT(tests[1].child("system-out").text().get(), testing::StartsWith("PASS: loss 0.00"));
  EXPECT_FALSE(tests[2].child("failure"));
  EXPECT_THAT(tests[2].child("skipped").attribute("message").value(),
              testing::StartsWith("INCONCLUSIVE. What would decide: "));
}

TEST(JUnit, ParsesWhateverNamesHold) {
  for (const std::string& hostile : test::hostile_texts()) {
    std::vector<test::Answers> cells = test::changed(10, 2, 1);
    cells[1].cell = hostile;
    AssayReport report = test::report_on(cells);
    report.title = hostile;
    const pugi::xml_document document = parsed(render_junit(report));
    EXPECT_EQ(document.child("testsuites").child("testsuite").attribute("name").value(),
              printable(hostile));
  }
}

void expect_self_contained(const std::string& page) {
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>\n<html lang=\"en\">"));
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'; "));
  const pugi::xml_document document = parsed(page);
  for (const char* forbidden : {"script", "iframe", "img", "object", "embed", "base", "form"}) {
    EXPECT_TRUE(document.select_nodes(fmt::format("//{}", forbidden).c_str()).empty()) << forbidden;
  }
  for (const auto& found : document.select_nodes("//@href | //@src | //@srcset | //@action")) {
    EXPECT_STREQ(found.attribute().value(), "data:,");
  }
  for (const auto& found : document.select_nodes("//@*")) {
    EXPECT_FALSE(std::string(found.attribute().name()).starts_with("on"));
  }
  const std::string style = document.child("html").child("head").child("style").text().get();
  EXPECT_THAT(style, Not(HasSubstr("url(")));
  EXPECT_THAT(style, Not(HasSubstr("@import")));
  // HTML does not undo escapes in a style element.
  EXPECT_THAT(page.substr(0, page.find("</style>")), HasSubstr(page_style()));
}

TEST(Html, HoldsEveryPart) {
  AssayReport report = three_verdicts();
  report.history.cells = {{"model/unified", {}}};
  PastCell past;
  past.created_at = "2026-08-31T04:00:00Z";
  past.source = "night.json";
  past.accuracy = 0.9;
  past.accuracy95 = {0.85, 0.95};
  past.verdict = "PASS";
  report.history.cells[0].past = {past};
  report.history.other_items = 2;
  const std::string page = render_html(report);
  expect_self_contained(page);
  const pugi::xml_document document = parsed(page);
  for (const char* id :
       {"verdicts", "accuracy", "noise", "agreement", "history", "flips", "origin"}) {
    EXPECT_EQ(document.select_nodes(fmt::format("//h2[@id='{}']", id).c_str()).size(), 1U) << id;
  }
  for (const auto& svg : document.select_nodes("//svg[@role='img']")) {
    EXPECT_TRUE(svg.node().child("title"));
    EXPECT_TRUE(svg.node().child("desc"));
  }
  for (const auto& heading : document.select_nodes("//th")) {
    EXPECT_TRUE(heading.node().attribute("scope"));
  }
  EXPECT_EQ(document.select_nodes("//details[@class='flip']").size(), 33U);
  EXPECT_THAT(page, HasSubstr("<mark>9</mark>"));
  EXPECT_THAT(page, HasSubstr("2 reports of another task or other items left out."));
}

TEST(Html, ManyFlipsAreCounted) {
  const AssayReport report = test::report_on(test::changed(400, kFlipsShown + 7, 0));
  const std::string page = render_html(report);
  EXPECT_EQ(parsed(page).select_nodes("//details[@class='flip']").size(), kFlipsShown);
  EXPECT_THAT(page, HasSubstr("7 flipped items more in the JSON report and in the records."));
}

TEST(Html, NoNameOrTextBecomesMarkup) {
  for (const std::string& hostile : test::hostile_texts()) {
    std::vector<test::Answers> cells = test::changed(10, 2, 1, 2);
    cells[1].cell = hostile;
    cells[1].extra = hostile;
    AssayReport report = test::report_on(cells);
    report.title = hostile;
    const std::string page = render_html(report);
    expect_self_contained(page);
    EXPECT_EQ(valid_utf8_prefix(page).size(), page.size());
    EXPECT_EQ(parsed(page).select_node("//p[@class='lead']").node().text().get(),
              printable(hostile));
  }
}

TEST(Scale, HasRoundTicksInside) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 1}, {-3.67, 2.2}, {92.95, 99.49}, {0, 1319}, {5, 5}, {0, 0}, {-1e-9, 1e-9}}) {
    const Scale scale(low, high);
    EXPECT_LE(scale.low(), low);
    EXPECT_GE(scale.high(), high);
    ASSERT_GE(scale.ticks().size(), 2U) << low << " " << high;
    EXPECT_LE(scale.ticks().size(), 12U);
    for (const double tick : scale.ticks()) {
      EXPECT_GE(scale.share(tick), 0);
      EXPECT_LE(scale.share(tick), 1);
    }
  }
  EXPECT_EQ(Scale(0, 1).tick_label(0.4), "0.4");
  EXPECT_EQ(Scale(0, 100).tick_label(20), "20");
  EXPECT_EQ(Scale(90, 99.5, {0, 100}).high(), 99.975);
  EXPECT_EQ(Scale(0, 1).at(-5), "1.00%");
}

}  // namespace
}  // namespace cupel
