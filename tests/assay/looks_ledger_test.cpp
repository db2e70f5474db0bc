#include "cupel/assay/looks_ledger.h"

#include <fstream>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include <gtest/gtest.h>

#include "cupel/base/file.h"

namespace cupel {
namespace {

using test::expect_input_error;

std::vector<Record> records(int repeats, const std::string& output) {
  std::vector<Record> all;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Record r;
    r.repeat = repeat;
    r.output = repeat == 0 ? output : "later";
    all.push_back(r);
  }
  return all;
}

TEST(StudyHash, ExtendedRecordsAreTheSameStudyAndFreshOnesAreNot) {
  const auto a = records(1, "a");
  const auto b = records(1, "b");
  EXPECT_EQ(study_hash(a, b), study_hash(records(3, "a"), records(2, "b")));
  EXPECT_NE(study_hash(a, b), study_hash(a, records(1, "c")));
  EXPECT_NE(study_hash(a, b), study_hash(b, a));
}

class Ledger : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "c.looks.json"; }
  void write(const std::string& text) const { std::ofstream(path()) << text; }

  test::TemporaryFolder folder_;
  LookPlan plan_;
};

TEST_F(Ledger, KeepsTheLooksOfAStudy) {
  StudyLooks looks = LooksLedger(path()).find("ref", "cand", "s", 1, plan_);
  EXPECT_TRUE(looks.taken.empty());
  EXPECT_FALSE(std::filesystem::exists(path()));
  looks.taken = {{1, 1, 0.0125}, {2, 3, 0.01}};
  LooksLedger(path()).keep(looks);
  // The plan of the first look stays.
  const StudyLooks again = LooksLedger(path()).find("ref", "cand", "s", 1, {.repeats = {16}});
  EXPECT_EQ(again.taken, looks.taken);
  EXPECT_EQ(again.plan.repeats, plan_.repeats);
  // Fresh records, or another reference, begin anew.
  EXPECT_TRUE(LooksLedger(path()).find("ref", "cand", "t", 1, plan_).taken.empty());
  EXPECT_TRUE(LooksLedger(path()).find("other", "cand", "s", 1, plan_).taken.empty());
}

TEST_F(Ledger, TheMarginIsThatOfTheFirstLook) {
  LooksLedger(path()).keep({"ref", "cand", "s", 1, plan_, {{1, 1, 0.0125}}});
  expect_input_error([&] { LooksLedger(path()).find("ref", "cand", "s", 2, plan_); },
                     {path(), "the margin 1"});
}

TEST_F(Ledger, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", "{\"format\": \"cupel looks 2\", \"studies\": []}",
                           "{\"format\": \"cupel looks 1\"}"}) {
    write(text);
    expect_input_error([&] { LooksLedger ledger(path()); }, {path()});
  }
  LooksLedger(folder_.path() / "x").keep({"ref", "cand", "s", 1, plan_, {{1, 1, 0.0125}}});
  const std::string good = read_file(folder_.path() / "x");
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write(text);
    expect_input_error([&] { LooksLedger ledger(path()); }, {path(), "study 0"});
  };
  broken("0.0125", "-1");
  broken("\"reference\": 1", "\"reference\": 0");
  broken("\"study\": \"s\"", "\"study\": 3");
}

}  // namespace
}  // namespace cupel
