#include "cupel/assay/outcomes.h"

#include "assay/cells.h"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using ::testing::HasSubstr;

std::vector<Record> records(int items, int repeats) {
  const std::string task("t");
  const std::string name("c");
  std::vector<Record> all;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (int item = items; item-- > 0;) {
      Record r;
      r.task = task;
      r.item = item;
      r.repeat = repeat;
      r.prompt_hash = fmt::format("h{}", item);
      r.gold = item;
      r.correct = item % 2 == 0 || repeat == 1;
      r.identity.cell = name;
      all.push_back(r);
    }
  }
  return all;
}

std::string message_of(const std::vector<Record>& all) {
  try {
    outcomes_from_records(all, "r.jsonl");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Outcomes, SortsItemsAndRepeats) {
  const CellOutcomes c = outcomes_from_records(records(3, 2), "r.jsonl");
  EXPECT_EQ(c.name, "c");
  ASSERT_EQ(c.items.size(), 3U);
  EXPECT_EQ(c.repeats(), 2);
  EXPECT_EQ(c.items[1].item, 1);
  EXPECT_EQ(c.items[1].correct, (test::Runs{0, 1}));
  EXPECT_DOUBLE_EQ(c.accuracy(), 2.5 / 3);
}

TEST(Outcomes, RefusesIncompleteAndMixedRecords) {
  EXPECT_THAT(message_of({}), HasSubstr("at least one record"));
  auto all = records(12, 2);
  for (int i = 0; i < 10; ++i) all.pop_back();  // repeat 1 of items 9 to 0
  EXPECT_THAT(message_of(all), HasSubstr("expected 2 repeats of every item, found fewer of item 0, "
                                         "1, 2, 3, 4, 5, 6, 7 and 2 more"));
  all = records(3, 2);
  all[4].prompt_hash = "x";
  EXPECT_THAT(message_of(all), HasSubstr("item 1 repeat 1"));
  all = records(3, 1);
  all[1].repeat = 0;
  all[1].item = 0;
  EXPECT_THAT(message_of(all), HasSubstr("item 0 repeat 0 twice"));
  all = records(3, 1);
  all[2].identity.build = "other";
  EXPECT_THAT(message_of(all), HasSubstr("records of one cell"));
  all = records(3, 1);
  all[2].task = "u";
  EXPECT_THAT(message_of(all), HasSubstr("records of one task"));
}

TEST(AccuracyInterval, IsWilsonAtOneRepeatAndByItemAbove) {
  const auto one = test::cell("c", {{1}, {1}, {0}, {1}});
  EXPECT_DOUBLE_EQ(accuracy_interval(one, 0.95).low, wilson(3, 4, 0.95).low);
  // Item means 1, 0.5, 0, 1: mean 0.625, variance 0.6875 / 3.
  const auto two = test::cell("c", {{1, 1}, {1, 0}, {0, 0}, {1, 1}});
  const Interval i = accuracy_interval(two, 0.95);
  // The upper end is cut at 1.
  EXPECT_NEAR(0.625 - i.low, kDisplayZ * 0.2393568, 1e-6);
  EXPECT_DOUBLE_EQ(i.high, 1);
  // Copies of a run add nothing.
  const auto copies = test::cell("c", {{1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}});
  EXPECT_NEAR(accuracy_interval(copies, 0.5).low, 0.5 - 0.6744898 * 0.2886751, 1e-6);
}

}  // namespace
}  // namespace cupel
