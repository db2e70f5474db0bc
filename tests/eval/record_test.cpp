#include "cupel/eval/record.h"

#include <fstream>

#include "support/temporary_folder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using ::testing::HasSubstr;

Record example() {
  Record r;
  r.task = "wordmath";
  r.item = 3;
  r.repeat = 1;
  r.prompt_hash = "00ff";
  r.output = " 2 + 2 = 4.\n#### 4";
  r.output_ids = {5, 129279};
  r.extracted = 4;
  r.gold = 4;
  r.correct = true;
  r.correct_strict = true;
  r.stop_reason = StopReason::kStopString;
  r.prompt_tokens = 100;
  r.completion_tokens = 2;
  r.min_margin = 0.1F;
  r.min_margin_step = 1;
  r.queue_seconds = 0.25;
  r.first_token_seconds = 0.5;
  r.total_seconds = 1.5;
  r.identity = {"preview/packed", "packed", "numerics=reference", "cupel 0.1.0", "m1"};
  r.launch = "l7";
  r.retries = 2;
  return r;
}

constexpr const char* kExampleLine =
    R"({"task":"wordmath","item":3,"repeat":1,"prompt_hash":"00ff",)"
    R"("output":" 2 + 2 = 4.\n#### 4","output_ids":[5,129279],"extracted":4,"gold":4,)"
    R"("correct":true,"correct_strict":true,"invalid":false,"stop_reason":"stop",)"
    R"("prompt_tokens":100,"completion_tokens":2,"min_margin":0.1,"min_margin_step":1,)"
    R"("queue_seconds":0.25,"first_token_seconds":0.5,"total_seconds":1.5,)"
    R"("cell":"preview/packed","backend":"packed","settings":"numerics=reference",)"
    R"("build":"cupel 0.1.0","model":"m1","launch":"l7","retries":2})";

TEST(Record, HasAFixedForm) {
  EXPECT_EQ(to_json_line(example()), kExampleLine);
}

TEST(Record, NoDigitAndNoMarginAreNull) {
  Record r = example();
  r.extracted = std::nullopt;
  r.min_margin = std::numeric_limits<float>::quiet_NaN();
  r.min_margin_step = -1;
  const std::string line = to_json_line(r);
  EXPECT_THAT(line, HasSubstr(R"("extracted":null)"));
  EXPECT_THAT(line, HasSubstr(R"("min_margin":null,"min_margin_step":-1)"));
  EXPECT_EQ(parse_record(line, "x"), r);
}

TEST(Record, InvalidUtf8IsReplaced) {
  Record r = example();
  r.output = "4\xe2\x96";
  r.output += '\0';
  EXPECT_EQ(parse_record(to_json_line(r), "x").output, std::string("4\xef\xbf\xbd\0", 5));
}

RC_GTEST_PROP(Record, ReadingBackIsEqual, ()) {
  Record r = example();
  // Any ASCII byte, control characters included, and text beyond ASCII.
  r.output = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)) + "é｜▁\U0001F600";
  r.prompt_hash = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  r.identity.settings = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  r.item = *rc::gen::inRange(0, std::numeric_limits<int>::max());
  r.repeat = *rc::gen::inRange(0, 1000);
  r.output_ids = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, 129280));
  if (*rc::gen::arbitrary<bool>()) r.extracted = *rc::gen::arbitrary<std::int64_t>();
  r.gold = *rc::gen::arbitrary<std::int64_t>();
  r.correct = *rc::gen::arbitrary<bool>();
  r.correct_strict = *rc::gen::arbitrary<bool>();
  r.invalid = *rc::gen::arbitrary<bool>();
  r.stop_reason = *rc::gen::element(StopReason::kEos, StopReason::kStopString, StopReason::kLength);
  r.min_margin = static_cast<float>(*rc::gen::inRange(0, 1 << 24)) / 3.0F;
  r.total_seconds = *rc::gen::inRange(0, 1 << 30) / 7.0;
  r.launch = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  r.retries = *rc::gen::inRange(0, 10);
  RC_ASSERT(parse_record(to_json_line(r), "x") == r);
}

std::string message_of(const std::string& line) {
  try {
    parse_record(line, "f:7");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string changed(const std::string& from, const std::string& to) {
  std::string line = kExampleLine;
  return line.replace(line.find(from), from.size(), to);
}

TEST(Record, WrongMembersAreNamed) {
  EXPECT_EQ(message_of(""), "f:7: expected one JSON object, found an empty line");
  EXPECT_EQ(message_of(changed(R"("gold":4,)", "")),
            "f:7: expected a member \"gold\", found an object without it");
  EXPECT_EQ(message_of(changed(R"("gold":4)", R"("gold":"4")")),
            "f:7, \"gold\": expected an integer from -9223372036854775808 to "
            "9223372036854775807, found \"4\"");
  EXPECT_THAT(message_of(changed(R"("item":3)", R"("item":-3)")), HasSubstr("f:7, \"item\""));
  EXPECT_THAT(message_of(changed(R"("item":3)", R"("item":3.0)")), HasSubstr("f:7, \"item\""));
  EXPECT_THAT(message_of(changed(R"("item":3)", R"("item":18446744073709551615)")),
              HasSubstr("f:7, \"item\""));
  EXPECT_THAT(message_of(changed(R"("correct":true)", R"("correct":1)")),
              HasSubstr("true or false, found 1"));
  EXPECT_THAT(message_of(changed(R"(:"stop")", R"(:"error")")),
              HasSubstr("eos, stop or length, found error"));
  EXPECT_THAT(message_of(changed("[5,129279]", "[5,-1]")), HasSubstr("a list of token ids"));
  EXPECT_THAT(message_of(changed("[5,129279]", "5")), HasSubstr("a list of token ids"));
}

TEST(Record, AnAddedKeyIsIgnored) {
  EXPECT_EQ(parse_record(changed(R"("item":3)", R"("later":"a","item":3)"), "x"), example());
}

TEST(Record, AnEarlyRecordHasNoLaunch) {
  Record expected = example();
  expected.launch.clear();
  expected.retries = 0;
  EXPECT_EQ(parse_record(changed(R"(,"launch":"l7","retries":2)", ""), "x"), expected);
}

TEST(Record, ATimeThatIsNotToldIsNull) {
  Record r = example();
  r.first_token_seconds = r.queue_seconds = std::numeric_limits<double>::quiet_NaN();
  const std::string line = to_json_line(r);
  EXPECT_THAT(line, HasSubstr(R"("queue_seconds":null,"first_token_seconds":null,)"));
  EXPECT_EQ(parse_record(line, "x"), r);
  EXPECT_NE(parse_record(line, "x"), example());
}

TEST(ReadRecords, NamesTheLine) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  const auto message = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      read_records(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  Record other = example();
  other.repeat = 2;
  const std::string lines = to_json_line(example()) + '\n' + to_json_line(other) + '\n';
  EXPECT_EQ(message(lines), "no error");
  EXPECT_THAT(message(lines + kExampleLine),
              HasSubstr("r.jsonl:3: expected each item and repeat once, found item 3 repeat 1 "
                        "again, first at "));
  EXPECT_THAT(message(lines + "{\"task\":"), HasSubstr("r.jsonl:3: expected one JSON object"));
}

TEST(ReadRecords, AKilledRunsLastLineMayBeDropped) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  std::ofstream(path) << kExampleLine << "\n{\"task\":\"wo";
  EXPECT_THROW(read_records(path), InputError);
  EXPECT_EQ(read_records(path, UnfinishedLine::kDrop), std::vector<Record>{example()});
  std::ofstream(path) << "{\"task\":\"wo";
  EXPECT_TRUE(read_records(path, UnfinishedLine::kDrop).empty());
}

}  // namespace
}  // namespace cupel
