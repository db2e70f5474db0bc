// The assay from the command line to the exit code. Items have no shots here, to be quick.
#include <algorithm>
#include <cstring>

#include "cli/cupel_program.h"
#include "support/tiny_checkpoint.h"
#include <nlohmann/json.hpp>

namespace cupel {
namespace {

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using test::TinyCheckpoint;
using testing::HasSubstr;

using Words = std::vector<std::string>;

class AssayCommand : public testing::Test {
 protected:
  CommandResult assay(const Words& more, const test::CommandOptions& options = {}) {
    Words words = {"assay", "wordmath", "--shots", "1", "--records", records_};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words, options);
  }
  long lines(const std::string& file) const {
    const std::string text = read_file(std::filesystem::path(records_) / file);
    return std::count(text.begin(), text.end(), '\n');
  }

  test::TemporaryFolder folder_;
  std::string records_ = folder_.path() / "records";
};

TEST_F(AssayCommand, TwoModelsOnTwoBackends) {
  const Words models = {"--model",     bundled("tiny-v4-preview"), bundled("tiny-v4-0731"),
                        "--reference", "tiny-v4-preview/unified",  "--limit",
                        "12"};
  Words words = models;
  words.insert(words.end(), {"--margin", "1"});
  // Twelve items cannot tell a loss of one point from none, whatever they say.
  const CommandResult result = assay(words);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.out,
              testing::StartsWith("wordmath: 12 items, 1 shots, temperature 0, 1 repeat\n\ncell"));
  const Words cells = {"tiny-v4-preview/packed", "tiny-v4-preview/unified", "tiny-v4-0731/packed",
                       "tiny-v4-0731/unified"};
  const std::size_t compared = result.out.find(
      "Compared item by item with "
      "tiny-v4-preview/unified at a margin of 1 point");
  const std::size_t records = result.out.find("\nRecords (one JSON line for each item and repeat)");
  ASSERT_NE(compared, std::string::npos) << result.out;
  ASSERT_NE(records, std::string::npos);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    SCOPED_TRACE(cells[i]);
    EXPECT_LT(result.out.find("\n" + cells[i] + " "), compared);
    const std::size_t row = result.out.find("\n" + cells[i] + " ", compared);
    if (i == 1) {
      EXPECT_EQ(row, std::string::npos);  // the reference is not compared with itself
    } else {
      ASSERT_LT(row, records);
      EXPECT_THAT(result.out.substr(row, result.out.find('\n', row + 1) - row),
                  HasSubstr("INCONCLUSIVE"));
    }
    std::string file = "wordmath." + cells[i] + ".jsonl";
    std::ranges::replace(file, '/', '.');
    EXPECT_THAT(result.out.substr(records), HasSubstr(file));
    EXPECT_EQ(lines(file), 12);
    EXPECT_THAT(result.err, HasSubstr("[" + std::to_string(i + 1) + "/4] " + cells[i]));
  }
  // The question across: does the other backend lose more between the models?
  EXPECT_THAT(result.out, HasSubstr("tiny-v4-0731 against tiny-v4-preview: packed less unified"));

  // The same records under a margin that any result of twelve such items is within.
  words = models;
  words.insert(words.end(), {"--margin", "100", "--resume"});
  const CommandResult wide = assay(words);
  EXPECT_EQ(wide.exit_code, 0) << wide.out;
  EXPECT_THAT(wide.err, HasSubstr("12 of 12 answers are there already"));
  EXPECT_THAT(wide.out, HasSubstr("PASS"));
}

// Before the first cell: nothing was run for nothing.
TEST_F(AssayCommand, AReportThatCannotBeWrittenIsFoundFirst) {
  const CommandResult result =
      assay({"--model", bundled("tiny-v4-preview"), "--reference", "tiny-v4-preview/unified",
             "--margin", "1", "--limit", "1", "--report-html", folder_.path() / "no/r.html"});
  test::expect_refused(result, {"no/r.html", "a writable path"});
  EXPECT_FALSE(std::filesystem::exists(records_));
}

TEST_F(AssayCommand, ReportsOfTheCellsThatRan) {
  const std::string page = folder_.path() / "r.html";
  const CommandResult result = assay(
      {"--model", bundled("tiny-v4-preview"), "--reference", "tiny-v4-preview/unified", "--margin",
       "1", "--limit", "2", "--report-html", page, "--report-json", folder_.path() / "r.json"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(read_file(page), HasSubstr("tiny-v4-preview/packed"));
  const auto report = nlohmann::json::parse(read_file(folder_.path() / "r.json"));
  EXPECT_EQ(report["task"], "wordmath");
  EXPECT_EQ(report["cells"].size(), 2U);
  EXPECT_GT(report["cells"][0]["output_tokens_per_second"].get<double>(), 0);
}

// A head of zeros decides for id 0 every time; the configuration makes that the end.
TEST_F(AssayCommand, ABrokenModelIsARegression) {
  TinyCheckpoint broken("tiny-v4-0731");
  broken.edit_tensor("head.weight", [](test::StoredTensor& tensor) {
    std::ranges::fill(tensor.data, std::byte{0});
  });
  broken.edit_config([](nlohmann::json& config) { config["eos_token_id"] = 0; });
  const std::string name = broken.path().filename();
  const CommandResult result =
      assay({"--model", bundled("tiny-v4-0731"), broken.path(), "--attention-backend", "unified",
             "--reference", "tiny-v4-0731/unified", "--margin", "1", "--limit", "12"});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("REGRESSION"));
  EXPECT_EQ(lines("wordmath." + name + ".unified.jsonl"), 12);
  // The other way round the candidate gains.
  const CommandResult better =
      assay({"--model", bundled("tiny-v4-0731"), broken.path(), "--attention-backend", "unified",
             "--reference", name + "/unified", "--margin", "1", "--limit", "12", "--resume"});
  EXPECT_EQ(better.exit_code, 0) << better.out << better.err;
}

TEST_F(AssayCommand, ThePinnedModelUnderTheNamesOfSglang) {
  const CommandResult result =
      assay({"--attention-backend", "triton,unified_kv_triton", "--reference",
             "tiny-v4-preview/unified", "--margin", "1", "--limit", "2", "--max-new-tokens", "4"},
            {.environment = {{test::kModelVariable, bundled("tiny-v4-preview")}}});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("note: attention backend triton is Cupel's packed\n"));
  EXPECT_THAT(result.err,
              HasSubstr("note: attention backend unified_kv_triton is Cupel's unified\n"));
  EXPECT_EQ(lines("wordmath.tiny-v4-preview.packed.jsonl"), 2);
  EXPECT_EQ(lines("wordmath.tiny-v4-preview.unified.jsonl"), 2);
}

// Records of another cell's name must not be written over.
TEST_F(AssayCommand, ModelsOfOneNameAreToldApartByTheirPaths) {
  const auto model = [&](const char* parent) {
    const auto folder = folder_.path() / parent / "model";
    std::filesystem::create_directories(folder.parent_path());
    std::filesystem::create_directory_symlink(bundled("tiny-v4-preview"), folder);
    return folder.string();
  };
  const std::string a = model("a"), b = model("b");
  const CommandResult result =
      assay({"--model", a, b, "--attention-backend", "packed", "--reference", a + "/packed",
             "--margin", "1", "--limit", "1", "--max-new-tokens", "2"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.out, HasSubstr(a + "/packed"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(records_), {}), 2);
}

}  // namespace
}  // namespace cupel
