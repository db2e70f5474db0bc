#include "cupel/eval/runner.h"

#include <fstream>
#include <set>
#include <sstream>

#include "support/temporary_folder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"

namespace cupel {
namespace {

using ::testing::HasSubstr;

// Answers "#### N" for "Question: N" from the last request to the first; `failing` prompts fail.
class FakeTarget : public Target {
 public:
  void complete(std::span<const CompletionRequest> requests, int concurrency,
                const std::function<void(std::size_t, const Completion&)>& done) override {
    last_concurrency = concurrency;
    for (std::size_t i = requests.size(); i-- > 0;) {
      if (static_cast<int>(asked.size()) == die_after) return;
      const std::string& prompt = requests[i].prompt;
      asked.push_back(prompt);
      seeds.insert(requests[i].seed);
      const std::string number = prompt.substr(prompt.find("Question: ") + 10, 1);
      Completion c;
      c.stop_reason = StopReason::kStopString;
      if (failing.contains(number)) {
        c.stop_reason = StopReason::kError;
        c.error = "connection reset";
      } else {
        c.text = texts.contains(number) ? texts[number] : "so\n#### " + number;
        if (c.text.empty()) c.stop_reason = StopReason::kLength;
        c.output_ids = {1, 2, 3};
        c.prompt_tokens = 10;
        c.cached_prompt_tokens = 4;
        c.completion_tokens = 3;
        c.min_margin = 0.5F;
        c.min_margin_step = 2;
        c.retries = number == "2" ? 3 : 0;
      }
      done(i, c);
    }
  }
  std::string model_fingerprint() const override { return model; }

  std::set<std::string> failing;
  std::map<std::string, std::string> texts;
  std::string model = "fake";
  int die_after = -1;  // stop reporting after so many requests
  int last_concurrency = -1;
  std::vector<std::string> asked;
  std::set<std::uint64_t> seeds;
};

Task small_task(int items) {
  Task task;
  task.name = "small";
  task.bos = false;
  for (int i = 0; i < items; ++i) {
    task.items.push_back({i, std::to_string(i), "#### " + std::to_string(i), i, i});
  }
  return task;
}

RunOptions options(const std::filesystem::path& records = {}) {
  RunOptions o;
  o.identity = {"cell", "packed", "numerics=reference", "build", ""};
  o.records = records;
  return o;
}

TEST(Runner, ScoresBothRulesAndWritesRecordsInOrder) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  FakeTarget target;
  target.texts = {{"1", "none"}, {"2", "it is 2"}, {"3", ""}, {"4", "#### 5"}};
  RunOptions o = options(path);
  o.repeats = 2;
  o.concurrency = 7;
  o.seed = 40;
  std::vector<std::int64_t> seen;
  o.progress = [&](const Progress& p) {
    seen.push_back(p.done);
    EXPECT_EQ(p.total, 10);
    EXPECT_EQ(p.prompt_tokens, 10 * p.done);
    EXPECT_EQ(p.completion_tokens, 3 * p.done);
  };
  const RunResult result = run_task(small_task(5), target, o);
  EXPECT_EQ(result.score.answers, 10);
  EXPECT_DOUBLE_EQ(result.score.accuracy, 0.4);         // 0 and 2
  EXPECT_DOUBLE_EQ(result.score.strict_accuracy, 0.2);  // 0
  EXPECT_DOUBLE_EQ(result.score.invalid_share, 0.4);    // 1 and 3
  EXPECT_DOUBLE_EQ(result.score.truncated_share, 0.2);  // 3
  EXPECT_EQ(result.score.prompt_tokens, 100);
  EXPECT_EQ(result.score.completion_tokens, 30);
  EXPECT_EQ(result.cached_prompt_tokens, 40);
  EXPECT_EQ(result.retries, 6);
  EXPECT_EQ(result.records[2].retries, 3);
  EXPECT_GT(result.output_tokens_per_second, 0);
  EXPECT_EQ(target.last_concurrency, 7);
  EXPECT_EQ(target.seeds.size(), 10U);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));

  EXPECT_EQ(read_records(path), result.records);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(result.records[static_cast<std::size_t>(i)].repeat, i / 5);
    EXPECT_EQ(result.records[static_cast<std::size_t>(i)].item, i % 5);
  }
  EXPECT_EQ(result.records[0].identity.model, "fake");
  EXPECT_THAT(result.records[0].identity.settings,
              ::testing::StartsWith("numerics=reference shots=0 bos=0 max_new_tokens=512"));
}

TEST(Runner, AnErrorIsNoWrongAnswerAndKeepsTheRest) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  FakeTarget target;
  target.failing = {"1", "3"};
  RunOptions o = options(path);
  o.repeats = 2;
  try {
    run_task(small_task(5), target, o);
    FAIL() << "no exception";
  } catch (const InfrastructureError& error) {
    EXPECT_EQ(error.code(), ExitCode::kInfrastructure);
    EXPECT_THAT(error.what(), HasSubstr("2 of 5 requests of repeat 0 got no answer (item 3: "
                                        "connection reset); 3 answers are kept in "));
  }
  EXPECT_EQ(target.asked.size(), 5U);  // the second repeat is not begun
  EXPECT_EQ(read_records(path).size(), 3U);

  // Resuming asks only what is missing and ends with the file of an undisturbed run.
  target.failing.clear();
  target.asked.clear();
  o.resume = true;
  const RunResult resumed = run_task(small_task(5), target, o);
  EXPECT_EQ(target.asked.size(), 7U);
  EXPECT_EQ(resumed.resumed, 3);
  EXPECT_EQ(resumed.score.answers, 10);
  FakeTarget fresh;
  RunOptions undisturbed = options(folder.path() / "u.jsonl");
  undisturbed.repeats = 2;
  run_task(small_task(5), fresh, undisturbed);
  EXPECT_EQ(read_file(path), read_file(undisturbed.records));
}

TEST(Runner, ResumingUnderAnotherLaunchKeepsTheFirst) {
  const test::TemporaryFolder folder;
  FakeTarget target;
  target.failing = {"1"};
  RunOptions o = options(folder.path() / "r.jsonl");
  o.launch = "a";
  EXPECT_THROW(run_task(small_task(2), target, o), InfrastructureError);
  target.failing.clear();
  o.launch = "b";
  o.resume = true;
  const RunResult result = run_task(small_task(2), target, o);
  EXPECT_EQ(result.records[0].launch, "a");
  EXPECT_EQ(result.records[1].launch, "b");
}

// The same questions, one of which failed at first: what is asked later samples as it would have.
TEST(Runner, EveryRequestHasItsOwnSeedAndKeepsItWhenResumed) {
  const test::TemporaryFolder folder;
  Task task = small_task(6);
  task.temperature = 1;
  RunOptions o = options(folder.path() / "r.jsonl");
  o.repeats = 3;
  o.resume = true;
  FakeTarget target;
  target.failing = {"1"};
  EXPECT_THROW(run_task(task, target, o), InfrastructureError);
  target.failing.clear();
  run_task(task, target, o);
  EXPECT_EQ(target.seeds.size(), 18U);
  for (const int repeat : {0, 1, 2}) {
    for (const int item : {0, 5}) {
      EXPECT_TRUE(target.seeds.contains(request_seed(0, repeat, item)));
    }
  }
  EXPECT_NE(request_seed(1, 0, 0), request_seed(0, 1, 0));
  EXPECT_NE(request_seed(0, 1, 0), request_seed(0, 0, 1));
  EXPECT_LT(request_seed(5, 6, 7), 1ULL << 53U);
  // Records that are resumed elsewhere rest on this value.
  EXPECT_EQ(request_seed(0, 0, 0), 4840030105844212U);
}

TEST(Runner, FurtherRepeatsStayInTheFileAndOutOfTheResult) {
  const test::TemporaryFolder folder;
  RunOptions o = options(folder.path() / "r.jsonl");
  FakeTarget target;
  o.repeats = 3;
  run_task(small_task(4), target, o);
  const std::string before = read_file(o.records);
  target.asked.clear();
  o.resume = o.keep_further = true;
  o.repeats = 2;
  const RunResult two = run_task(small_task(4), target, o);
  EXPECT_EQ(two.records.size(), 8U);
  EXPECT_EQ(two.resumed, 8);
  EXPECT_TRUE(target.asked.empty());
  EXPECT_EQ(read_file(o.records), before);
}

TEST(Runner, ATargetThatStopsReportingIsInfrastructure) {
  FakeTarget target;
  target.die_after = 2;
  EXPECT_THROW(run_task(small_task(3), target, options()), InfrastructureError);
}

TEST(Runner, ResumingAfterAKillDropsTheUnfinishedLine) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  FakeTarget target;
  RunOptions o = options(path);
  o.resume = true;  // of a file that does not exist yet
  run_task(small_task(4), target, o);
  const std::string whole = read_file(path);
  std::ofstream(path) << whole.substr(0, whole.size() / 2 - 1);  // in the second of four lines
  target.asked.clear();
  run_task(small_task(4), target, o);
  EXPECT_EQ(target.asked.size(), 3U);
  EXPECT_EQ(read_file(path), whole);
  target.asked.clear();
  EXPECT_EQ(run_task(small_task(4), target, o).score.accuracy, 1);
  EXPECT_TRUE(target.asked.empty());
}

TEST(Runner, ResumingAnotherRunIsRefusedAndWritesNothing) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.jsonl";
  FakeTarget target;
  RunOptions o = options(path);
  o.repeats = 2;
  run_task(small_task(4), target, o);
  const std::string before = read_file(path);
  o.resume = true;

  const auto message = [&](const Task& task, const RunOptions& run) -> std::string {
    try {
      run_task(task, target, run);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  Task task = small_task(4);
  task.name = "other";
  EXPECT_THAT(message(task, o), HasSubstr("expected task other"));
  task = small_task(4);
  task.max_new_tokens = 4;
  EXPECT_THAT(message(task, o), HasSubstr("max_new_tokens=4"));
  task = small_task(4);
  task.items[2].question = "?";
  EXPECT_THAT(message(task, o), HasSubstr("item 2 repeat 0: expected prompt hash"));
  task = small_task(4);
  task.items[2].gold = 77;
  EXPECT_THAT(message(task, o), HasSubstr("expected gold 77"));
  EXPECT_THAT(message(small_task(3), o), HasSubstr("only items below 3"));
  RunOptions changed = o;
  changed.repeats = 1;
  EXPECT_THAT(message(small_task(4), changed), HasSubstr("repeats below 1"));
  changed = o;
  changed.identity.backend = "unified";
  EXPECT_THAT(message(small_task(4), changed), HasSubstr("expected backend unified"));
  changed = o;
  changed.identity.build = "newer";
  EXPECT_THAT(message(small_task(4), changed), HasSubstr("expected build newer"));
  target.model = "another";
  EXPECT_THAT(message(small_task(4), o), HasSubstr("expected model another"));
  EXPECT_EQ(read_file(path), before);
}

TEST(Runner, AFullDiskEndsTheRun) {
  FakeTarget target;
  EXPECT_THROW(run_task(small_task(3), target, options("/dev/full")), InfrastructureError);
  EXPECT_EQ(target.asked.size(), 1U);
}

TEST(Runner, RefusesSenselessNumbers) {
  FakeTarget target;
  RunOptions o = options();
  o.repeats = 0;
  EXPECT_THROW(run_task(small_task(1), target, o), InputError);
  o = options();
  o.concurrency = -1;
  EXPECT_THROW(run_task(small_task(1), target, o), InputError);
}

TEST(ProgressLine, EstimatesTheTimeLeftFromWhatWasAsked) {
  Progress p{30, 130, 10, 2000, 500, 10};
  EXPECT_EQ(progress_line(p), "30/130 answers, 200 prompt tok/s, 50 output tok/s, 50s left");
  p.done = 10;
  EXPECT_EQ(progress_line(p), "10/130 answers, 200 prompt tok/s, 50 output tok/s");
}

TEST(FormatDuration, ThreeScales) {
  EXPECT_EQ(format_duration(44.6), "45s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(130), "2m10s");
  EXPECT_EQ(format_duration(3725), "1h02m");
}

}  // namespace
}  // namespace cupel
