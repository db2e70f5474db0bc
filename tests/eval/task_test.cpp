#include "cupel/eval/task.h"

#include <fstream>

#include "support/temporary_folder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TaskOptions options() {
  TaskOptions o;
  o.data_folder = std::filesystem::path(CUPEL_SOURCE_DIR) / "data";
  return o;
}

std::string message_of(std::string_view name, const TaskOptions& o) {
  try {
    load_task(name, o);
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(Task, WordmathHasItsOwnShots) {
  const Task task = load_task("wordmath", options());
  ASSERT_EQ(task.items.size(), 1319U);
  ASSERT_EQ(task.shots.size(), 8U);
  EXPECT_EQ(task.items[1318].id, 1318);
  EXPECT_EQ(task.items[0].gold, 0);
  EXPECT_EQ(task.items[1].gold, 887);
  EXPECT_NE(task.shots[0].question, task.items[0].question);
  EXPECT_EQ(task.max_new_tokens, 512);
  EXPECT_EQ(task.temperature, 0);
  EXPECT_THAT(task.stop, ::testing::ElementsAre("Question", "Assistant:", "<|separator|>"));
}

TEST(Task, Gsm8kTakesTheFirstLinesOfTheTestFileAndScoresThemToo) {
  const Task task = load_task("gsm8k", options());
  ASSERT_EQ(task.items.size(), 1319U);
  ASSERT_EQ(task.shots.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(task.shots[i].question, task.items[i].question);
  EXPECT_EQ(task.items[0].gold, 18);
  EXPECT_EQ(task.items[2].gold, 70000);
}

TEST(Task, RendersShotsThenTheQuestion) {
  Task task;
  task.shots = {{"1 + 1?", "1 + 1 = 2.\n#### 2"}, {"3?", "#### 3"}};
  const TaskItem item{0, "2 + 2?", "#### 4", 4, 4};
  const std::string text =
      "Question: 1 + 1?\nAnswer: 1 + 1 = 2.\n#### 2\n\n"
      "Question: 3?\nAnswer: #### 3\n\n"
      "Question: 2 + 2?\nAnswer:";
  EXPECT_EQ(task.prompt(item), "<｜begin▁of▁sentence｜>" + text);
  task.bos = false;
  EXPECT_EQ(task.prompt(item), text);
}

TEST(Fill, ReplacesOnceFromLeftToRight) {
  EXPECT_EQ(fill("{a}-{b}-{a}", {{"a", "{b}"}, {"b", "2"}}), "{b}-2-{b}");
  EXPECT_EQ(fill("{c} {a {a}} {", {{"a", "1"}}), "{c} {a 1} {");
  EXPECT_EQ(fill("", {{"a", "1"}}), "");
}

TEST(Task, OtherFilesFieldsAndForms) {
  const test::TemporaryFolder folder;
  const auto items = folder.path() / "items.jsonl";
  const auto shots = folder.path() / "shots.jsonl";
  std::ofstream(items) << R"({"problem": "one {shots}", "value": 7})" << '\n'
                       << R"({"problem": "two", "value": "about -8"})";
  std::ofstream(shots) << R"({"problem": "s", "value": 3})" << '\n';
  TaskOptions o = options();
  o.file = items;
  o.shots_file = shots;
  o.question_field = "problem";
  o.answer_field = "value";
  o.shots = 1;
  o.bos = false;
  o.form = {.prompt = "Solve.\n{shots}Q: {question}\nA:", .shot = "Q: {question}\nA: {answer}\n"};
  const Task task = load_task("gsm8k", o);
  EXPECT_EQ(task.name, "gsm8k");
  ASSERT_EQ(task.items.size(), 2U);
  EXPECT_EQ(task.items[0].gold, 7);
  EXPECT_EQ(task.items[1].gold, 8);  // the lenient rule knows no sign
  EXPECT_EQ(task.prompt(task.items[0]), "Solve.\nQ: s\nA: 3\nQ: one {shots}\nA:");

  const auto refused = [&](const PromptForm& form, int count) {
    o.form = form;
    o.shots = count;
    return message_of("gsm8k", o);
  };
  EXPECT_THAT(refused({.prompt = "{shots}"}, 0),
              HasSubstr("--template: expected a text with {question}"));
  EXPECT_THAT(refused({.prompt = "{question}"}, 1), HasSubstr("--shots 0"));
  EXPECT_EQ(refused({.prompt = "{question}"}, 0), "no error");
  EXPECT_THAT(refused({.shot = "{question}"}, 1), HasSubstr("--shot-template"));
  o.form = {};
  o.answer_field = "gold";
  EXPECT_THAT(message_of("gsm8k", o), HasSubstr("items.jsonl:1: expected a member \"gold\""));
}

TEST(Task, ShotsAndLimitAreTakenFromTheFront) {
  TaskOptions o = options();
  o.shots = 0;
  o.limit = 3;
  const Task task = load_task("wordmath", o);
  EXPECT_EQ(task.items.size(), 3U);
  EXPECT_THAT(task.prompt(task.items[0]),
              StartsWith("<｜begin▁of▁sentence｜>Question: Gita has 27"));
  o.shots = 9;
  EXPECT_THAT(message_of("wordmath", o), AllOf(HasSubstr("0 to 8"), EndsWith("found 9")));
  o.shots = -1;
  EXPECT_THAT(message_of("wordmath", o), EndsWith("found -1"));
  o.shots = 8;
  o.limit = -1;
  EXPECT_THAT(message_of("wordmath", o), StartsWith("limit: "));
}

TEST(Task, ASettingThatChangesAnswersChangesTheSettings) {
  Task task;
  const std::string before = task.settings();
  task.max_new_tokens = 511;
  EXPECT_NE(task.settings(), before);
  EXPECT_EQ(before,
            "shots=0 bos=1 max_new_tokens=512 temperature=0 "
            "stop=[\"Question\",\"Assistant:\",\"<|separator|>\"]");
}

TEST(Task, AnyFileOfQuestionsAndSignedGolds) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "mine.jsonl";
  std::ofstream(path) << R"({"question": "q0", "answer": "#### -7", "more": 1})"
                      << "\n\n"
                      << R"({"question": "q1", "answer": "42 apples"})"
                      << "\r\n";
  TaskOptions o;
  o.shots = 1;
  const Task task = load_task(path.string(), o);
  EXPECT_EQ(task.name, "mine");
  ASSERT_EQ(task.items.size(), 2U);
  EXPECT_EQ(task.items[0].gold, 7);
  EXPECT_EQ(task.items[0].strict_gold, -7);
  EXPECT_EQ(task.items[1].gold, 42);
  EXPECT_EQ(task.items[1].strict_gold, 42);
}

TEST(Task, BadLinesAreNamed) {
  const test::TemporaryFolder folder;
  const auto path = (folder.path() / "bad.jsonl").string();
  TaskOptions o;
  o.shots = 0;
  const std::string good = R"({"question": "q", "answer": "#### 1"})";
  const auto message = [&](const std::string& second) {
    std::ofstream(path) << good << '\n' << second << '\n' << good << '\n';
    return message_of(path, o);
  };
  EXPECT_THAT(message(R"({"question": "q", "answ)"),
              AllOf(StartsWith(path + ":2: expected"), HasSubstr("broken JSON at byte")));
  EXPECT_THAT(message("[1]"), HasSubstr(":2: expected one JSON object, found [1]"));
  EXPECT_THAT(message(R"({"question": "q"})"), HasSubstr(":2: expected a member \"answer\""));
  EXPECT_THAT(message(R"({"question": 3, "answer": "1"})"), HasSubstr("a string, found 3"));
  EXPECT_THAT(message(R"({"question": "q", "answer": "one"})"), HasSubstr("no digit"));
  EXPECT_THAT(message("{\"question\": \"\xff\", \"answer\": \"1\"}"), HasSubstr("broken JSON"));
  EXPECT_THAT(message(R"({"question": "q", "answer": "9223372036854775807"})"),
              HasSubstr("a larger one"));
  EXPECT_THAT(message(R"({"question": "q", "answer": "1", "x": 1e999})"),
              HasSubstr(":2: expected one JSON object"));
}

TEST(Task, MissingAndEmptyFiles) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(message_of("gsm9k", options()), HasSubstr("wordmath, gsm8k or a file"));
  TaskOptions o;
  o.data_folder = folder.path();
  EXPECT_THAT(message_of("wordmath", o), HasSubstr("wordmath/test.jsonl"));
  const auto path = (folder.path() / "empty.jsonl").string();
  std::ofstream(path) << "";
  EXPECT_THAT(message_of(path, o), HasSubstr("at least one line"));
}

}  // namespace
}  // namespace cupel
