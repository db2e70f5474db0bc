#include "cupel/assay/report/json.h"

// A header of valijson 1.0 uses what it does not include.
#include <limits>

#include "assay/report/example.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "cupel/assay/report/history.h"
#include "cupel/base/file.h"
#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

class Schema {
 public:
  Schema() {
    document_ = json::parse(
        read_file(std::filesystem::path(CUPEL_SOURCE_DIR) / "docs/assay-report.schema.json"));
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(Adapter(document_), schema_);
  }

  // Empty if valid.
  std::string errors(const json& value) const {
    valijson::ValidationResults results;
    valijson::Validator validator;
    std::string text;
    if (validator.validate(schema_, Adapter(value), &results)) return text;
    for (const auto& error : results) text += error.description + '\n';
    return text.empty() ? "invalid" : text;
  }

 private:
  json document_;
  valijson::Schema schema_;
};

// Repeats, so that noise is known; an interaction; an undecided comparison beside a decided one.
AssayReport full_report() {
  std::vector<test::Answers> cells = test::changed(60, 14, 2, 2);
  cells.push_back(cells[0]);
  cells[2].cell = "model/reference";
  cells[2].correct[40] = {1, 0};
  AssayReport report = test::report_on(cells);
  report.interactions.push_back({"pair", 0.5, 1.0, {-1.5, 2.5}, 0.3});
  report.probes = {test::probe_of(ProbeKind::kPhase, Verdict::kInconclusive),
                   test::probe_of(ProbeKind::kNll, std::nullopt)};
  return report;
}

TEST(Json, IsWhatTheSchemaSays) {
  const Schema schema;
  for (const AssayReport& report : {full_report(), test::report_on(test::changed(30, 2, 1)),
                                    test::report_on({{"alone", {{1}, {0}}, {}}})}) {
    const json object = json::parse(render_json(report));
    EXPECT_EQ(schema.errors(object), "");
  }
}

TEST(Json, TheSchemaRefusesWhatIsMissingAddedOrOfAnotherType) {
  const Schema schema;
  const json good = json::parse(render_json(full_report()));
  ASSERT_FALSE(good["comparisons"][0]["flips"].empty());
  ASSERT_FALSE(good["cells"][0]["noise"].is_null());
  const std::vector<std::string> objects = {"",
                                            "/cells/0",
                                            "/cells/0/noise",
                                            "/comparisons/0",
                                            "/comparisons/0/flips/0",
                                            "/comparisons/0/flips/0/reference",
                                            "/agreement/0",
                                            "/interactions/0",
                                            "/cells/0/accuracy95"};
  for (const std::string& at : objects) {
    const json::json_pointer pointer(at);
    for (const auto& [key, value] : good.at(pointer).items()) {
      json missing = good;
      missing.at(pointer).erase(key);
      EXPECT_NE(schema.errors(missing), "") << at << " without " << key;
    }
    json added = good;
    added.at(pointer)["unheard_of"] = 1;
    EXPECT_NE(schema.errors(added), "") << at;
    json other = good;
    other.at(pointer) = "text";
    EXPECT_NE(schema.errors(other), "") << at;
  }
  json verdict = good;
  verdict["comparisons"][0]["verdict"] = "MAYBE";
  EXPECT_NE(schema.errors(verdict), "");
}

TEST(Json, TellsVerdictsFlipsAndMargins) {
  const json object = json::parse(render_json(full_report()));
  EXPECT_EQ(object["verdict"], "REGRESSION");
  const json& row = object["comparisons"][0];
  EXPECT_EQ(row["candidate"], "model/unified");
  EXPECT_EQ(row["lost"], 14);
  ASSERT_EQ(row["flips"].size(), 16U);
  const json& flip = row["flips"][0];
  EXPECT_EQ(flip["change"], "lost");
  EXPECT_EQ(flip["first_different_token"], 3);
  EXPECT_EQ(flip["near_tie"], "yes");
  EXPECT_EQ(flip["candidate"]["text"], "99");
  EXPECT_DOUBLE_EQ(flip["candidate"]["min_margin"].get<double>(), 0.0625);
  EXPECT_EQ(object["cells"][0]["records"], "model/packed.jsonl");
}

TEST(Json, HoldsAnyText) {
  for (const std::string& hostile : test::hostile_texts()) {
    std::vector<test::Answers> cells = test::changed(10, 2, 1);
    cells[1].cell = hostile;
    cells[1].extra = hostile;
    const std::string text = render_json(test::report_on(cells));
    EXPECT_EQ(valid_utf8_prefix(text).size(), text.size());
    EXPECT_EQ(Schema().errors(json::parse(text)), "");
  }
}

TEST(History, AReportComesBackAsItWasWritten) {
  const AssayReport report = full_report();
  const PastReport past = parse_past_report(render_json(report), "x/night.json");
  EXPECT_EQ(past.source, "night.json");
  EXPECT_EQ(past.created_at, report.created_at);
  EXPECT_EQ(past.item_set, report.item_set);
  ASSERT_EQ(past.cells.size(), report.cells.size());
  const History history = history_of(report, {&past, 1});
  ASSERT_EQ(history.cells.size(), 3U);
  EXPECT_EQ(history.other_items, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(history.cells[i].past.size(), 1U);
    const PastCell& cell = history.cells[i].past.front();
    EXPECT_EQ(history.cells[i].cell, report.cells[i].name);
    EXPECT_DOUBLE_EQ(cell.accuracy, report.cells[i].accuracy);
    EXPECT_DOUBLE_EQ(cell.accuracy95.low, report.cells[i].accuracy95.low);
    EXPECT_EQ(cell.repeats, 2);
    EXPECT_DOUBLE_EQ(cell.margin, 1);
  }
  EXPECT_EQ(history.cells[0].past[0].verdict, std::nullopt);  // the reference
  EXPECT_EQ(history.cells[1].past[0].verdict, "REGRESSION");
}

TEST(History, OtherItemsAreCountedNotShown) {
  const AssayReport report = full_report();
  const PastReport other =
      parse_past_report(render_json(test::report_on(test::changed(59, 2, 1))), "other.json");
  const History history = history_of(report, {&other, 1});
  EXPECT_TRUE(history.cells.empty());
  EXPECT_EQ(history.other_items, 1);
}

TEST(History, FoldersAreReadByTimeAndEachReportOnce) {
  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    LineWriter(folder.path() / name, false).write_line(text);
    return (folder.path() / name).string();
  };
  AssayReport report = full_report();
  report.created_at = "2026-09-02T04:00:00Z";
  const std::string second = write("a.json", render_json(report));
  write("copy.json", render_json(report));
  report.created_at = "2026-09-01T04:00:00Z";
  write("b.json", render_json(report));
  const std::string ledger = write("x.looks.json", "{\"studies\": []}");
  write("notes.txt", "not JSON");
  const std::vector<std::string> paths = {folder.path().string(), second};
  const std::vector<PastReport> past = load_history(paths);
  ASSERT_EQ(past.size(), 2U);
  EXPECT_EQ(past[0].created_at, "2026-09-01T04:00:00Z");
  EXPECT_EQ(past[1].created_at, "2026-09-02T04:00:00Z");

  // Named itself a file must be a report.
  EXPECT_THROW(load_history(std::vector<std::string>{ledger}), InputError);
  EXPECT_THROW(load_history(std::vector<std::string>{"no such file"}), InputError);
  EXPECT_THROW(parse_past_report("{", "x"), InputError);
  EXPECT_THROW(parse_past_report("[]", "x"), InputError);
  json later = json::parse(render_json(report));
  later["schema"] = "cupel-assay-report/2";
  EXPECT_THROW(parse_past_report(later.dump(), "x"), InputError);
  json broken = json::parse(render_json(report));
  broken["cells"][0]["accuracy"] = "high";
  EXPECT_THROW(parse_past_report(broken.dump(), "x"), InputError);
}

}  // namespace
}  // namespace cupel
