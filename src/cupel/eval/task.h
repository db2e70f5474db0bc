// Evaluation tasks: questions with an integer answer, asked few-shot as raw completions
// (serving-stack.md section C).
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cupel/eval/target.h"

namespace cupel {

// Text of the begin-of-sentence token. Cupel's tokenizer adds none by itself, so a prompt that
// wants it carries it as text.
inline constexpr std::string_view kBosText = "<｜begin▁of▁sentence｜>";

struct QuestionAnswer {
  std::string question;
  std::string answer;  // worked answer, as the shots show it
};

struct TaskItem {
  int id = 0;  // from 0, the line of the data file
  std::string question;
  std::string answer;
  std::int64_t gold = 0;         // by the lenient rule, from the answer text
  std::int64_t strict_gold = 0;  // the answer's "#### " line; `gold` where it has none
};

// How a prompt is put together. Placeholders are replaced once, from left to right; whatever else
// is in braces is text.
struct PromptForm {
  std::string prompt = "{shots}Question: {question}\nAnswer:";
  std::string shot = "Question: {question}\nAnswer: {answer}\n\n";
};

struct Task {
  std::string name;
  PromptForm form = {};
  std::vector<QuestionAnswer> shots;
  std::vector<TaskItem> items;
  bool bos = true;
  std::vector<std::string> stop = {"Question", "Assistant:", "<|separator|>"};
  int max_new_tokens = 512;
  float temperature = 0;

  // [kBosText] + form.prompt with {question}, and {shots} as form.shot for each shot.
  std::string prompt(const TaskItem& item) const;
  // Everything of the task that changes an answer and is not in the prompt or the gold, as text:
  // "shots=8 bos=1 max_new_tokens=512 temperature=0 stop=[...]".
  std::string settings() const;
};

struct TaskOptions {
  std::filesystem::path data_folder;  // holds wordmath/ and gsm8k/
  int shots = 8;
  int limit = 0;                          // ask only the first items; 0 = all
  std::filesystem::path file = {};        // the items, instead of the named task's own file
  std::filesystem::path shots_file = {};  // the shots, instead of the task's own
  std::string question_field = "question";
  std::string answer_field = "answer";  // a text with a number, or an integer
  PromptForm form = {};
  // SGLang sends the text alone and leaves BOS to the server's tokenizer, whose
  // tokenizer_config.json says add_bos_token false for this model: bos = false asks what it asks.
  // The default is true because the model was trained with BOS at the start of every text.
  bool bos = true;
  int max_new_tokens = 512;
  float temperature = 0;
};

// `name` is "wordmath" (shots: shots.jsonl), "gsm8k" (shots: the first lines of the test file,
// which are also scored, as SGLang does), or a path to a file of JSON lines (shots as gsm8k; the
// task is named after the file). Throws InputError for an unknown task, a broken line (file and
// line number), an answer without digits or out of range, no items, more shots than there are, or a
// form without {question} or without a place for the shots.
Task load_task(std::string_view name, const TaskOptions& options);

// `form` with each {name} of `values` replaced, from left to right and once: a value that holds a
// placeholder stays as it is.
std::string fill(std::string_view form,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values);

}  // namespace cupel
