#include "cupel/eval/task.h"

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

std::vector<Line> read_lines(const std::filesystem::path& path) {
  std::vector<Line> lines;
  jsonl::for_each_object(read_file(path), path.string(),
                         [&](const nlohmann::json& object, const std::string& where) {
                           lines.push_back({{jsonl::text_member(object, "question", where),
                                             jsonl::text_member(object, "answer", where)},
                                            where});
                         });
  if (lines.empty()) throw InputError(path.string(), "at least one line", "none");
  return lines;
}

TaskItem make_item(const Line& line, int id) {
  const auto gold = last_digits(line.text.answer);
  if (!gold) throw InputError(line.where + ", \"answer\"", "a text with a number", "no digit");
  if (*gold == kLargestAnswer) {
    throw InputError(line.where + ", \"answer\"", "a number below 2^63 - 1", "a larger one");
  }
  const std::int64_t strict = marked_answer(line.text.answer).value_or(*gold);
  return {id, line.text.question, line.text.answer, *gold, strict};
}

}  // namespace

std::string Task::prompt(const TaskItem& item) const {
  std::string text(bos ? kBosText : "");
  for (const QuestionAnswer& shot : shots) {
    text += fmt::format("Question: {}\nAnswer: {}\n\n", shot.question, shot.answer);
  }
  text += fmt::format("Question: {}\nAnswer:", item.question);
  return text;
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
  if (shots.empty()) shots = test;

  if (options.limit < 0) {
    throw InputError("limit", "0 or more items", std::to_string(options.limit));
  }
  if (options.max_new_tokens < 1) {
    throw InputError("max-new-tokens", "1 or more", std::to_string(options.max_new_tokens));
  }
  const std::vector<Line> lines = read_lines(test);
  const std::vector<Line> shot_lines = shots == test ? lines : read_lines(shots);
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
  task.bos = options.bos;
  task.max_new_tokens = options.max_new_tokens;
  task.temperature = options.temperature;
  return task;
}

}  // namespace cupel
