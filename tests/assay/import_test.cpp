#include "cupel/assay/import.h"

#include <fstream>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include <gtest/gtest.h>

#include "cupel/assay/outcomes.h"

namespace cupel {
namespace {

using test::expect_input_error;

class Import : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
    return folder_.path() / name;
  }
  std::vector<Record> read(const std::string& text, const ImportOptions& options = {}) {
    const std::vector<std::filesystem::path> files{file("r.jsonl", text)};
    return import_results(files, "cell", options);
  }
  void refused(const std::string& text, std::vector<std::string> parts,
               const ImportOptions& options = {}) {
    parts.push_back("r.jsonl");
    expect_input_error([&] { read(text, options); }, parts);
  }

  test::TemporaryFolder folder_;
};

const std::string kLmEval =
    R"({"doc_id": 1, "filter": "strict-match", "resps": [["so 7"]], "filtered_resps": ["7"], "exact_match": 0.0, "prompt_hash": "p1"})"
    "\n"
    R"({"doc_id": 0, "filter": "strict-match", "resps": [["so 5"]], "filtered_resps": ["5"], "exact_match": 1.0, "prompt_hash": "p0"})"
    "\n";

TEST_F(Import, LmEval) {
  const std::vector<Record> records = read(kLmEval);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].item, 1);
  EXPECT_EQ(records[0].output, "so 7");
  EXPECT_FALSE(records[0].correct);
  EXPECT_TRUE(records[1].correct);
  EXPECT_EQ(records[1].prompt_hash, "p0");
  const CellOutcomes cell = outcomes_from_records(records, "r");
  EXPECT_EQ(cell.name, "cell");
  EXPECT_EQ(cell.accuracy(), 0.5);
}

TEST_F(Import, LmEvalAsksWhichFilterAndTakesTheMetricNamed) {
  const std::string two =
      kLmEval +
      R"({"doc_id": 0, "filter": "flexible-extract", "filtered_resps": ["5"], "exact_match": 1.0})";
  refused(two, {":3", "--filter", "flexible-extract, strict-match"});
  EXPECT_EQ(read(two, {.filter = "flexible-extract"}).size(), 1U);
  EXPECT_EQ(read(two, {.filter = "strict-match"}).size(), 2U);
  refused(two, {"none with that filter"}, {.filter = "other"});
  const std::string acc = R"({"doc_id": 0, "filtered_resps": [], "acc": 1, "acc_norm": 0})";
  EXPECT_TRUE(read(acc)[0].correct);
  EXPECT_FALSE(read(acc, {.metric = "acc_norm"})[0].correct);
  refused(acc, {":1", "f1"}, {.metric = "f1"});
}

TEST_F(Import, SglEvalInAnyOrder) {
  const auto records = read(
      R"({"id": "gsm8k-12", "generation": "x", "predicted_answer": "3", "symbolic_correct": true, "problem": "q", "finish_reason": "stop"})"
      "\n"
      R"({"id": 3, "generation": "y", "is_correct": 0.0, "problem": "r"})");
  EXPECT_EQ(records[0].item, 12);
  EXPECT_TRUE(records[0].correct);
  EXPECT_EQ(records[1].item, 3);
  EXPECT_NE(records[0].prompt_hash, records[1].prompt_hash);
  refused(R"({"id": 1, "generation": "", "symbolic_correct": false, "finish_reason": "error"})",
          {":1", "no wrong answer"});
  refused(R"({"id": "twelve", "generation": "", "symbolic_correct": false})", {":1", "twelve"});
}

TEST_F(Import, BenchRawResultsAndRepeatsOverFiles) {
  const std::string first = R"({"prompt_id": 0, "prompt": "q", "output": "a", "correct": true})"
                            "\n"
                            R"({"prompt_id": 1, "prompt": "r", "output": "b", "correct": false})";
  const std::string second = R"({"prompt_id": 1, "prompt": "r", "output": "c", "correct": true})"
                             "\n"
                             R"({"prompt_id": 0, "prompt": "q", "output": "a", "correct": true})";
  const std::vector<std::filesystem::path> files{file("a", first), file("b", second)};
  const CellOutcomes cell = outcomes_from_records(import_results(files, "c"), "c");
  EXPECT_EQ(cell.repeats(), 2);
  EXPECT_EQ(cell.accuracy(), 0.75);
  // The same item twice in a file is a repeat as well.
  EXPECT_EQ(outcomes_from_records(read(first + "\n" + second), "c").repeats(), 2);
}

TEST_F(Import, OurOwnRecordsKeepTheirIdentity) {
  Record r;
  r.task = "t";
  r.identity.cell = "m/unified";
  const std::string line = to_json_line(r) + "\n";
  const std::vector<std::filesystem::path> files{file("a", line), file("b", line)};
  const std::vector<Record> records = import_results(files, "cell");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].identity.cell, "m/unified");
  EXPECT_EQ(records[1].repeat, 1);
}

TEST_F(Import, RefusesWhatItCannotRead) {
  refused("", {"at least one sample"});
  refused("{\"task\": \"gsm8k\", \"accuracy\": 0.9}",
          {":1", "per-sample results", "accuracy, task"});
  refused(kLmEval + "{broken\n", {":3"});
  refused(R"({"doc_id": 0, "filtered_resps": [], "exact_match": 0.5})", {":1", "0 or 1", "0.5"});
  refused(R"({"doc_id": -1, "filtered_resps": [], "exact_match": 1})", {":1", "doc_id"});
  refused(kLmEval + R"({"prompt_id": 0, "output": "a", "correct": true})",
          {":3", "lm-eval samples, as before"});
  const std::vector<std::filesystem::path> none{folder_.path() / "none"};
  EXPECT_THROW(import_results(none, "c"), InputError);
}

}  // namespace
}  // namespace cupel
