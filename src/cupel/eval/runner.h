// Runs a task on a target and keeps a record of each answer as it comes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cupel/eval/record.h"
#include "cupel/eval/score.h"
#include "cupel/eval/target.h"
#include "cupel/eval/task.h"

namespace cupel {

struct Progress {
  std::int64_t done = 0;  // answers, resumed ones included
  std::int64_t total = 0;
  std::int64_t resumed = 0;            // of `done`, read from the records file
  std::int64_t prompt_tokens = 0;      // of the answers of this run, without resumed ones
  std::int64_t completion_tokens = 0;  // likewise
  double elapsed_seconds = 0;
};

// "120/1319 answers, 1234 prompt tok/s, 345 output tok/s, 2m10s left".
std::string progress_line(const Progress& progress);

// "45s", "2m10s", "1h02m".
std::string format_duration(double seconds);

struct RunOptions {
  CellIdentity identity;   // `model` is filled from the target; `settings` gets the task's appended
  int repeats = 1;         // whole passes over the items, one after the other
  int concurrency = 0;     // 0 = no limit
  std::uint64_t seed = 0;  // of the run; each request has its own: request_seed()
  std::string launch;      // goes into the records; resuming may bring another
  std::filesystem::path records;  // empty: keep no file
  // Reads what `records` already holds and asks only what is missing; a missing file is an empty
  // one. Without it an existing file is replaced.
  bool resume = false;
  // Records of further repeats in the file to resume stay there and out of the result, instead of
  // being refused: an earlier run had asked for more.
  bool keep_further = false;
  std::function<void(const Progress&)> progress;  // after each answer; may be empty
};

struct RunResult {
  std::vector<Record> records;  // by repeat, then item
  Score score;                  // of all records
  std::int64_t resumed = 0;     // records that were read, not asked
  // Of this run alone: wall time from the first request to the last answer, and rates over it.
  // Prompt tokens count whether or not a prefix cache held them; cached_prompt_tokens says how
  // many.
  double wall_seconds = 0;
  double prompt_tokens_per_second = 0;
  double output_tokens_per_second = 0;
  std::int64_t cached_prompt_tokens = 0;
  std::int64_t retries = 0;  // further tries that the answers of this run took
};

// The seed that an item is sampled with in a repeat: a hash of the three, so that no two requests
// of a run share their random numbers, and a resumed run has the same ones.
std::uint64_t request_seed(std::uint64_t seed, int repeat, int item);

// Adds to `result` the time, tokens and retries of a run of the same cell before it.
void add_speed(RunResult& result, const RunResult& before);

// Asks every item `repeats` times. The records file grows by a line as each answer ends; when all
// are there it is rewritten in the order of RunResult::records. Throws InfrastructureError if a
// request ended in StopReason::kError or got no answer: that is no wrong answer. The pass it
// happened in is finished first and all its answers are kept. Throws InputError if the file to
// resume holds another task, prompt, cell, build, model or setting, or more than is asked now;
// nothing is written then.
RunResult run_task(const Task& task, Target& target, const RunOptions& options);

}  // namespace cupel
