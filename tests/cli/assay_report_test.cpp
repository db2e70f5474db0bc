// The files that `cupel assay compare` writes beside what it prints.
#include "assay/report/example.h"
#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>

#include "cupel/assay/report/markdown.h"
#include "cupel/base/file.h"

namespace cupel {
namespace {

using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using testing::HasSubstr;

using Words = std::vector<std::string>;

class AssayReports : public testing::Test {
 protected:
  AssayReports() {
    const std::vector<test::Answers> cells = test::changed(300, 40, 3);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string text;
      for (const Record& r : test::answers_as_records(cells[i])) text += to_json_line(r) + '\n';
      test::write_file(path(i == 0 ? "ref.jsonl" : "cand.jsonl"), text);
    }
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  Words words(const Words& more) const {
    Words all = {"assay",    "compare", path("ref.jsonl"), path("cand.jsonl"),
                 "--margin", "1",       "--no-ledger"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  test::TemporaryFolder folder_;
};

TEST_F(AssayReports, AllFormsOfOneReport) {
  const CommandResult plain = cupel_program(words({}));
  const CommandResult result =
      cupel_program(words({"--report-markdown", path("r.md"), "--report-json", path("r.json"),
                           "--report-junit", path("r.xml"), "--report-html", path("r.html")}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, plain.out);
  EXPECT_EQ(files(), 6U);
  EXPECT_THAT(read_file(path("r.md")), testing::StartsWith("## ❌ REGRESSION"));
  EXPECT_THAT(read_file(path("r.xml")), HasSubstr("<failure type=\"REGRESSION\""));
  EXPECT_THAT(read_file(path("r.html")), HasSubstr("</html>"));
  const auto json = nlohmann::json::parse(read_file(path("r.json")));
  EXPECT_EQ(json["verdict"], "REGRESSION");
  EXPECT_EQ(json["comparisons"][0]["flips"].size(), 43U);
  EXPECT_EQ(json["cells"][0]["records"], path("ref.jsonl"));

  // The next night shows the night before.
  const CommandResult next =
      cupel_program(words({"--report-html", path("next.html"), "--history", path("r.json")}));
  EXPECT_EQ(next.exit_code, 1) << next.err;
  EXPECT_THAT(read_file(path("next.html")), HasSubstr(json["created_at"].get<std::string>()));
  EXPECT_THAT(read_file(path("next.html")), HasSubstr("2 reports</summary>"));
}

TEST_F(AssayReports, AMistakeIsFoundFirst) {
  const std::size_t before = files();
  expect_refused(cupel_program(words({"--report-html", path("no/folder/r.html")})),
                 {"no/folder/r.html"});
  expect_refused(cupel_program(words({"--report-json", folder_.path()})),
                 {"--report-json", "folder"});
  expect_refused(cupel_program(words({"--report-json", path("r"), "--report-html", path("./r")})),
                 {"--report-html", "again"});
  expect_refused(cupel_program(words({"--history", path("none.json")})), {"none.json"});
  expect_refused(cupel_program(words({"--history", path("ref.jsonl")})), {"ref.jsonl"});
  // Not even the results are read.
  expect_refused(cupel_program({"assay", "compare", "none", "none", "--margin", "1",
                                "--report-junit", path("no/r.xml")}),
                 {"no/r.xml"});
  EXPECT_EQ(files(), before);
}

// A limit on the size of files fails as a full disk does: in the middle of a write.
TEST_F(AssayReports, AFullDiskLeavesThePrintedReportAndWholeFiles) {
  test::write_file(path("r.html"), "the one before");
  std::string command = "trap '' XFSZ; ulimit -f 8; exec";
  Words all = words({"--report-html", path("r.html"), "--report-junit", path("r.xml")});
  all.insert(all.begin(), CUPEL_PROGRAM);
  for (const std::string& word : all) command += " '" + word + "'";
  const CommandResult result = test::run_command({"/bin/sh", "-c", command});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(result.out, cupel_program(words({})).out);
  EXPECT_THAT(result.err, HasSubstr("r.html"));
  EXPECT_EQ(read_file(path("r.html")), "the one before");
  EXPECT_THAT(read_file(path("r.xml")), HasSubstr("</testsuites>"));  // small enough
  EXPECT_EQ(files(), 4U);                                             // nothing half-written
}

}  // namespace
}  // namespace cupel
