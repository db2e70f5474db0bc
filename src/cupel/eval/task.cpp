#include "cupel/eval/task.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/eval/answer.h"
#include "cupel/eval/jsonl.h"

namespace cupel {
namespace {

struct Line {
  QuestionAnswer text;
  std::string where;
};

// Many data sets hold a number as such.
std::string answer_member(const nlohmann::json& object, const TaskOptions& options,
                          const std::string& where) {
  const char* key = options.answer_field.c_str();
  const nlohmann::json& value = jsonl::member(object, key, where);
  return value.is_number_integer() ? value.dump() : jsonl::text_member(object, key, where);
}

std::vector<Line> read_lines(const std::filesystem::path& path, const TaskOptions& options) {
  std::vector<Line> lines;
  jsonl::for_each_object(
      read_file(path), path.string(), [&](const nlohmann::json& object, const std::string& where) {
        lines.push_back({{jsonl::text_member(object, options.question_field.c_str(), where),
                          answer_member(object, options, where)},
                         where});
      });
  if (lines.empty()) throw InputError(path.string(), "at least one line", "none");
  return lines;
}

bool has(const std::string& form, std::string_view placeholder) {
  return form.find(placeholder) != std::string::npos;
}

void check(const PromptForm& form, int shots) {
  if (!has(form.prompt, "{question}")) {
    throw InputError("--template", "a text with {question}", "\"" + form.prompt + "\"");
  }
  if (shots > 0 && !has(form.prompt, "{shots}")) {
    throw InputError("--template", "a text with {shots}, or --shots 0", "\"" + form.prompt + "\"");
  }
  if (shots > 0 && !(has(form.shot, "{question}") && has(form.shot, "{answer}"))) {
    throw InputError("--shot-template", "a text with {question} and {answer}",
                     "\"" + form.shot + "\"");
  }
}

TaskItem make_item(const Line& line, int id) {
  const auto gold = last_digits(line.text.answer);
  const std::string where = line.where + ", the answer";
  if (!gold) throw InputError(where, "a text with a number", "no digit");
  if (*gold == kLargestAnswer) {
    throw InputError(where, "a number below 2^63 - 1", "a larger one");
  }
  const std::int64_t strict = marked_answer(line.text.answer).value_or(*gold);
  return {id, line.text.question, line.text.answer, *gold, strict};
}

}  // namespace

std::string Task::prompt(const TaskItem& item) const {
  std::string examples;
  for (const QuestionAnswer& shot : shots) {
    examples += fill(form.shot, {{"question", shot.question}, {"answer", shot.answer}});
  }
  return std::string(bos ? kBosText : "") +
         fill(form.prompt, {{"shots", examples}, {"question", item.question}});
}

std::string Task::settings() const {
  std::string stops;
  for (const std::string& text : stop) {
    stops += fmt::format("{}\"{}\"", stops.empty() ? "" : ",", text);
  }
  return fmt::format("shots={} bos={} max_new_tokens={} temperature={} stop=[{}]", shots.size(),
                     bos ? 1 : 0, max_new_tokens, temperature, stops);
}

Task load_task(std::string_view name, const TaskOptions& options) {
  Task task;
  std::filesystem::path test;
  std::filesystem::path shots;
  if (name == "wordmath") {
    test = options.data_folder / "wordmath" / "test.jsonl";
    shots = options.data_folder / "wordmath" / "shots.jsonl";
    task.name = name;
  } else if (name == "gsm8k") {
    test = options.data_folder / "gsm8k" / "test.jsonl";
    task.name = name;
  } else {
    test = std::filesystem::path(name);
    std::error_code error;
    if (!std::filesystem::is_regular_file(test, error)) {
      throw InputError("task", "wordmath, gsm8k or a file of JSON lines", std::string(name));
    }
    task.name = test.stem().string();
  }
  if (!options.file.empty()) {
    test = options.file;
    shots.clear();
  }
  if (!options.shots_file.empty()) shots = options.shots_file;
  if (shots.empty()) shots = test;
  check(options.form, options.shots);

  if (options.limit < 0) {
    throw InputError("limit", "0 or more items", std::to_string(options.limit));
  }
  if (options.max_new_tokens < 1) {
    throw InputError("max-new-tokens", "1 or more", std::to_string(options.max_new_tokens));
  }
  const std::vector<Line> lines = read_lines(test, options);
  const std::vector<Line> shot_lines = shots == test ? lines : read_lines(shots, options);
  if (options.shots < 0 || static_cast<std::size_t>(options.shots) > shot_lines.size()) {
    throw InputError("shots",
                     fmt::format("0 to {}, the lines of {}", shot_lines.size(), shots.string()),
                     std::to_string(options.shots));
  }
  for (int i = 0; i < options.shots; ++i) {
    task.shots.push_back(shot_lines[static_cast<std::size_t>(i)].text);
  }
  for (const Line& line : lines) {
    const int id = static_cast<int>(task.items.size());
    if (options.limit > 0 && id == options.limit) break;
    task.items.push_back(make_item(line, id));
  }
  task.form = options.form;
  task.bos = options.bos;
  task.max_new_tokens = options.max_new_tokens;
  task.temperature = options.temperature;
  return task;
}

std::string fill(std::string_view form,
                 std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string text;
  while (!form.empty()) {
    const std::size_t brace = std::min(form.find('{'), form.size());
    text += form.substr(0, brace);
    form.remove_prefix(brace);
    const auto* const found = std::find_if(values.begin(), values.end(), [&](const auto& value) {
      const std::size_t size = value.first.size();
      return form.size() >= size + 2 && form.substr(1, size) == value.first &&
             form[size + 1] == '}';
    });
    if (found != values.end()) {
      text += found->second;
      form.remove_prefix(found->first.size() + 2);
    } else if (!form.empty()) {
      text += form.front();
      form.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace cupel
