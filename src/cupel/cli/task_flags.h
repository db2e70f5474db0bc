// Flags of the commands that run a task.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/cli/data_folder.h"
#include "cupel/eval/task.h"

namespace cupel {

// The text itself, or what the file named after '@' holds. Throws InputError.
inline std::string text_or_file(const std::string& flag) {
  return flag.starts_with('@') ? read_file(flag.substr(1)) : flag;
}

struct TaskFlags {
  std::string name;
  std::string data;
  bool no_bos = false;
  std::vector<std::string> stop;
  TaskOptions options;
  std::string form;       // a text, or @FILE
  std::string shot_form;  // likewise
  int repeats = 1;
  int concurrency = 0;
  std::uint64_t seed = 0;
  bool resume = false;

  void add(CLI::App& app) {
    app.add_option("task", name,
                   "wordmath, gsm8k, or a path to JSON lines with question and answer")
        ->required();
    add_prompts(app);
    add_run(app);
  }

  // What the prompts are.
  void add_prompts(CLI::App& app) {
    app.add_option("--data", data, "Folder with wordmath/ and gsm8k/ (default: the bundled data)");
    app.add_option("--file", options.file,
                   "JSON lines to ask instead of the named task's own (default: the task's)");
    app.add_option("--shots-file", options.shots_file,
                   "JSON lines to take the worked examples from (default: wordmath's own; else the "
                   "first lines of the items)");
    app.add_option("--question-field", options.question_field, "Member that holds the question")
        ->capture_default_str();
    app.add_option("--answer-field", options.answer_field,
                   "Member that holds the answer: a text whose last number counts, or an integer")
        ->capture_default_str();
    app.add_option("--template", form,
                   "Prompt with {question} and {shots}: a text, or @FILE (default: "
                   "\"{shots}Question: {question}\\nAnswer:\")");
    app.add_option("--shot-template", shot_form,
                   "One worked example with {question} and {answer}: a text, or @FILE (default: "
                   "\"Question: {question}\\nAnswer: {answer}\\n\\n\")");
    app.add_option("--shots", options.shots, "Worked examples in the prompt")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--limit", options.limit, "Ask only the first N items; 0 = all")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--max-new-tokens", options.max_new_tokens, "Limit of new tokens an answer")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--stop", stop,
                   "Text that ends an answer; may be repeated (default: Question, Assistant:, "
                   "<|separator|>)")
        ->allow_extra_args(false);
    app.add_flag("--no-bos", no_bos,
                 "Do not put the begin-of-sentence token before the prompt (default: put it)");
    app.add_option("--concurrency", concurrency, "Requests at a time; 0 = no limit")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
  }

  // How often and how they are asked.
  void add_run(CLI::App& app) {
    app.add_option("--temperature", options.temperature, "0 = the most likely token every time")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_option("--repeats", repeats, "Passes over the items")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option(
           "--seed", seed,
           "For temperature above 0: each request samples by a hash of it, the repeat and the item")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    app.add_flag(
        "--resume", resume,
        "Keep the records that are there and ask only what is missing (default: start anew)");
  }

  // Throws InputError.
  Task load() const {
    // The range check of the flag lets NaN pass.
    if (!std::isfinite(options.temperature)) {
      throw InputError("--temperature", "a number", std::to_string(options.temperature));
    }
    for (const std::string& text : stop) {
      if (text.empty()) throw InputError("--stop", "a text", "\"\"");
    }
    TaskOptions o = options;
    o.data_folder = find_data_folder(data);
    o.bos = !no_bos;
    if (!form.empty()) o.form.prompt = text_or_file(form);
    if (!shot_form.empty()) o.form.shot = text_or_file(shot_form);
    Task task = load_task(name, o);
    if (!stop.empty()) task.stop = stop;
    return task;
  }
};

}  // namespace cupel
