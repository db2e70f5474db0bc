#include <algorithm>
#include <sstream>

#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/eval/task.h"

namespace cupel {
namespace {

using nlohmann::ordered_json;
using test::bundled;
using test::CommandResult;
using test::cupel_program;
using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// A record without the times, which no two runs share.
std::string timeless(const std::string& line) {
  auto record = ordered_json::parse(line);
  for (const char* key : {"queue_seconds", "first_token_seconds", "total_seconds"}) {
    EXPECT_EQ(record.erase(key), 1U);
  }
  return record.dump();
}

class EvalCommand : public testing::Test {
 protected:
  CommandResult eval(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"eval",      "wordmath", "--limit",
                                      "8",         "--model",  bundled("tiny-v4-0731") + "/",
                                      "--records", records_};
    words.insert(words.end(), more.begin(), more.end());
    CommandResult result = cupel_program(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }

  test::TemporaryFolder folder_;
  std::string records_ = folder_.path() / "r.jsonl";
};

TEST_F(EvalCommand, RecordsHaveTheDocumentedKeysAndResumingCompletesThem) {
  const CommandResult result = eval({});
  EXPECT_THAT(result.out, HasSubstr("wordmath: 8 items, 8 shots"));
  EXPECT_THAT(result.out, HasSubstr("\ntiny-v4-0731/unified "));  // the slash at the end is no name
  EXPECT_THAT(result.out, HasSubstr(records_));
  EXPECT_THAT(result.err, HasSubstr("8/8 answers"));

  const Task task = load_task(
      "wordmath",
      {.data_folder = std::filesystem::path(CUPEL_SOURCE_DIR) / "data", .shots = 8, .limit = 8});
  const std::vector<std::string> whole = lines_of(records_);
  ASSERT_EQ(whole.size(), 8U);
  int correct = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto r = ordered_json::parse(whole[i]);
    std::vector<std::string> keys;
    for (const auto& [key, value] : r.items()) keys.push_back(key);
    EXPECT_THAT(
        keys, testing::ElementsAre("task", "item", "repeat", "prompt_hash", "output", "output_ids",
                                   "extracted", "gold", "correct", "correct_strict", "invalid",
                                   "stop_reason", "prompt_tokens", "completion_tokens",
                                   "min_margin", "min_margin_step", "queue_seconds",
                                   "first_token_seconds", "total_seconds", "cell", "backend",
                                   "settings", "build", "model", "launch", "retries"));
    EXPECT_EQ(r["task"], "wordmath");
    EXPECT_EQ(r["item"], i);
    EXPECT_EQ(r["repeat"], 0);
    EXPECT_EQ(r["prompt_hash"], hash_hex(task.prompt(task.items[i])));
    EXPECT_EQ(r["gold"], task.items[i].gold);
    EXPECT_EQ(r["correct"], r["extracted"] == r["gold"]);
    EXPECT_EQ(r["invalid"], r["extracted"].is_null());
    EXPECT_EQ(r["stop_reason"], "stop");
    EXPECT_EQ(r["completion_tokens"], r["output_ids"].size());
    EXPECT_GT(r["prompt_tokens"], 500);
    EXPECT_GT(r["min_margin"], 0);
    EXPECT_GE(r["min_margin_step"], 0);
    EXPECT_LT(r["min_margin_step"], r["completion_tokens"]);
    EXPECT_LE(r["queue_seconds"], r["first_token_seconds"]);
    EXPECT_LE(r["first_token_seconds"], r["total_seconds"]);
    EXPECT_EQ(r["cell"], "tiny-v4-0731/unified");
    EXPECT_EQ(r["backend"], "unified");
    EXPECT_EQ(r["build"].get<std::string>() + "\n", cupel_program({"--version"}).out);
    EXPECT_THAT(r["model"].get<std::string>(), HasSubstr("tokenizer="));
    EXPECT_EQ(r["launch"], "");
    EXPECT_EQ(r["retries"], 0);
    correct += r["correct"].get<bool>() ? 1 : 0;
  }
  EXPECT_GE(correct, 7);  // 98.8 % over all items

  // A killed run: three lines and a half. The first three are kept to the byte.
  std::string cut;
  for (std::size_t i = 0; i < 3; ++i) cut += whole[i] + '\n';
  test::write_file(records_, cut + whole[3].substr(0, whole[3].size() / 2));
  const CommandResult resumed = eval({"--resume", "--concurrency", "2"});
  EXPECT_THAT(resumed.err, HasSubstr("3 of 8 answers are there already"));
  EXPECT_THAT(resumed.out, testing::StartsWith("wordmath: 8 items"));
  const std::vector<std::string> again = lines_of(records_);
  ASSERT_EQ(again.size(), 8U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(again[i], whole[i]);
  for (std::size_t i = 3; i < 8; ++i) {
    EXPECT_NE(again[i], whole[i]);  // asked again: its times are new
    EXPECT_EQ(timeless(again[i]), timeless(whole[i]));
  }

  // A run with another setting is another run.
  test::expect_refused(
      cupel_program({"eval", "wordmath", "--limit", "8", "--model", bundled("tiny-v4-0731"),
                     "--records", records_, "--resume", "--attention-backend", "packed"}),
      {records_, "tiny-v4-0731/packed"});
  EXPECT_EQ(lines_of(records_), again);
}

TEST_F(EvalCommand, OwnTaskRepeatsAndFlags) {
  const std::string task = folder_.path() / "mine.jsonl";
  test::write_file(task,
                   R"({"question": "Ivy has 5 apples. Ivy buys 3 more apples. How many apples )"
                   R"(does Ivy have now?", "answer": "#### 8"})"
                   "\n");
  // The task after the flags: --stop takes one text, not all that follows.
  const CommandResult result = cupel_program({"eval",
                                              "--model",
                                              bundled("tiny-v4-0731"),
                                              "--records",
                                              records_,
                                              "--shots",
                                              "0",
                                              "--repeats",
                                              "2",
                                              "--no-bos",
                                              "--temperature",
                                              "0.5",
                                              "--seed",
                                              "4",
                                              "--max-new-tokens",
                                              "30",
                                              "--stop",
                                              "Question",
                                              "--stop",
                                              "\n\n",
                                              task});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("mine: 1 items, 0 shots"));
  const std::vector<std::string> lines = lines_of(records_);
  ASSERT_EQ(lines.size(), 2U);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto r = ordered_json::parse(lines[static_cast<std::size_t>(repeat)]);
    EXPECT_EQ(r["repeat"], repeat);
    EXPECT_EQ(r["prompt_tokens"], 25);
    EXPECT_EQ(
        r["settings"],
        "shots=0 bos=0 max_new_tokens=30 temperature=0.5 stop=[\"Question\",\"\n\n\"] seed=4");
  }
}

}  // namespace
}  // namespace cupel
