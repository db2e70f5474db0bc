// The commands under `cupel assay` that judge what is there.
#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include <fmt/format.h>

namespace cupel {
namespace {

using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(AssayCounts, TheSeedCase) {
  const CommandResult r =
      cupel_program({"assay", "counts", "--reference", "1220/1319", "--candidate",
                     "1188/1319,1175/1319", "--margin", "1.0", "--control-reference", "1224/1319",
                     "--control-candidate", "1217/1319", "--floor", "0.91"});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  for (const char* part :
       {"Loss 2.92 points", "at most 0.94, 95 % 1.08 to 4.76", "p = 0.0009 against no loss",
        "REGRESSION for these launches", "u = 338, 95 % 67 to 1319", "2.39 +- 1.39",
        "Counts cannot show", "at least two launches", "binomial"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
}

TEST(AssayCounts, VerdictsAndRefusals) {
  const auto counts = [](const std::string& ref, const std::string& cand) {
    return cupel_program(
        {"assay", "counts", "--reference", ref, "--candidate", cand, "--margin", "1"});
  };
  EXPECT_EQ(counts("1220/1319", "1220/1319").exit_code, 2);
  EXPECT_EQ(counts("1200/1319", "1319/1319").exit_code, 0);
  expect_refused(counts("1220/1319", "1188/1318"), {"the same number of items"});
  expect_refused(counts("1220", "1188/1319"), {"--reference", "CORRECT/ITEMS"});
  expect_refused(counts("1220/1319", "1320/1319"), {"--candidate", "1320"});
  expect_refused(counts("1220/1319", "1188/1319,1175/1300"), {"--candidate"});
}

TEST(AssayFloor, TheTableOfTheSpecification) {
  const CommandResult r =
      cupel_program({"assay", "floor", "--accuracy", "0.9249", "--floor", "0.91"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* part : {"7e-15", "1e-06", "99.8 %", "97.7 %", "94.5 %", "93.4 %"}) {
    EXPECT_THAT(r.out, HasSubstr(part));
  }
  expect_refused(cupel_program({"assay", "floor"}), {"--records", "--accuracy"});
}

TEST(AssayPlan, TheRepeatsOfTheSpecification) {
  const CommandResult r = cupel_program({"assay", "plan", "--margin", "1", "--cells", "7",
                                         "--looks", "4", "--unstable", "60,160,320"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, testing::ContainsRegex("\n +60 +3 "));
  EXPECT_THAT(r.out, testing::ContainsRegex("\n +160 +7 "));
  EXPECT_THAT(r.out, testing::ContainsRegex("\n +320 +13 "));
  EXPECT_THAT(r.out, HasSubstr("18 REGRESSIONs a year"));
  expect_refused(cupel_program({"assay", "plan"}), {"--margin is required"});
  expect_refused(cupel_program({"assay", "plan", "--margin", "1", "--unstable", "600"}),
                 {"--unstable", "at most 366"});
  expect_refused(cupel_program({"assay", "plan", "--margin", "1", "--unstable", "3,x"}),
                 {"--unstable", "3,x"});
}

TEST(AssayCommands, NamesStandBeforeTasksAndFlagsBehindNames) {
  expect_refused(cupel_program({"assay", "wordmath", "plan", "--margin", "1"}),
                 {"after its name", "task"});
  expect_refused(cupel_program({"assay", "--margin", "1", "plan"}), {"after its name", "--margin"});
  expect_refused(cupel_program({"assay", "--reference", "a/b", "--margin", "1"}),
                 {"task is required"});
  expect_refused(cupel_program({"assay", "wordmath", "--margin", "1"}),
                 {"--reference is required"});
}

class AssayCompare : public testing::Test {
 protected:
  // `lost` items wrong, in SGLang's raw form; the texts name the run.
  std::string results(const std::string& name, int items, int lost, int runs) const {
    std::string text;
    for (int run = 0; run < runs; ++run) {
      for (int i = 0; i < items; ++i) {
        text += fmt::format(
            "{{\"prompt_id\": {}, \"prompt\": \"q{}\", \"output\": \"{}\", \"correct\": {}}}\n", i,
            i, run, i >= lost);
      }
    }
    const auto path = folder_.path() / name;
    test::write_file(path, text);
    return path;
  }
  static CommandResult compare(const Words& more) {
    Words words{"assay", "compare"};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words);
  }

  test::TemporaryFolder folder_;
};

TEST_F(AssayCompare, VerdictsByItem) {
  const std::string ref = results("ref.jsonl", 1000, 0, 1);
  const std::string same = results("same.jsonl", 1000, 0, 1);
  const std::string worse = results("worse.jsonl", 1000, 30, 1);
  const CommandResult pass = compare({ref, same, "--margin", "1"});
  EXPECT_EQ(pass.exit_code, 0) << pass.err;
  EXPECT_THAT(pass.out, HasSubstr("PASS"));
  const CommandResult both = compare({ref, same, worse, "--margin", "1"});
  EXPECT_EQ(both.exit_code, 1) << both.err;
  EXPECT_THAT(both.out, HasSubstr("loss 3.00, 30 lost, 0 gained"));
  EXPECT_THAT(both.out, HasSubstr("over the 2 comparisons together"));
  EXPECT_EQ(compare({ref, worse, "--margin", "1", "--bound", "anytime"}).exit_code, 1);
}

TEST_F(AssayCompare, ExtendedRecordsAreChargedForEveryLook) {
  const std::string ref = results("ref.jsonl", 1000, 5, 1);
  const std::string cand = results("cand.jsonl", 1000, 7, 1);
  const Words words{ref, cand, "--margin", "0.3"};
  EXPECT_EQ(compare(words).exit_code, 2);
  EXPECT_TRUE(std::filesystem::exists(cand + ".looks.json"));
  // Once more is the same look. Extended: this study's one look is spent.
  EXPECT_EQ(compare(words).exit_code, 2);
  results("ref.jsonl", 1000, 5, 8);
  results("cand.jsonl", 1000, 7, 8);
  const CommandResult extended = compare(words);
  EXPECT_EQ(extended.exit_code, 2) << extended.out;
  EXPECT_THAT(extended.out, HasSubstr("only fresh records"));
  // Without the first look the same records decide: the item set's error is small.
  EXPECT_EQ(compare({ref, cand, "--margin", "0.3", "--no-ledger"}).exit_code, 0);
  expect_refused(compare({ref, cand, "--margin", "0.4"}), {"looks.json", "the margin 0.3"});
}

TEST_F(AssayCompare, LooksFixedBeforehandGoOn) {
  const std::string ref = results("ref.jsonl", 1000, 5, 1);
  const std::string cand = results("cand.jsonl", 1000, 7, 1);
  const Words words{ref, cand, "--margin", "0.3", "--looks", "1,2,4,8"};
  const CommandResult first = compare(words);
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_THAT(first.out, HasSubstr("next look is after 2 repeats"));
  results("ref.jsonl", 1000, 5, 2);
  results("cand.jsonl", 1000, 7, 2);
  EXPECT_THAT(compare(words).out, HasSubstr("bounds at 1.25 %"));
}

TEST_F(AssayCompare, Refusals) {
  const std::string ref = results("ref.jsonl", 10, 0, 1);
  const std::string fewer = results("fewer.jsonl", 8, 0, 1);
  expect_refused(compare({ref, fewer, "--margin", "1"}), {"the same items", "8, 9 only in ref"});
  expect_refused(compare({ref, fewer}), {"--margin is required"});
  expect_refused(compare({ref, "--margin", "1"}), {"at least one candidate"});
  expect_refused(compare({ref, fewer, "--margin", "0"}), {"--margin"});
  expect_refused(compare({ref, fewer, "--margin", "1", "--bound", "x"}), {"--bound"});
  test::write_file(folder_.path() / "broken.jsonl", "{}\n");
  expect_refused(compare({ref, folder_.path() / "broken.jsonl", "--margin", "1"}),
                 {"broken.jsonl:1", "per-sample"});
}

}  // namespace
}  // namespace cupel
