// Evaluations and assays of servers that can add.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cli/cupel_program.h"
#include "support/fake_server.h"
#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>

#include "cupel/eval/record.h"

namespace cupel::test {

using Words = std::vector<std::string>;

// "2 + 3" of the last question of a prompt, added up.
inline int right_answer(const std::string& prompt) {
  const std::string question = prompt.substr(prompt.rfind("Question: ") + 10);
  int a = 0, b = 0;
  char plus = 0;
  std::istringstream(question) >> a >> plus >> b;
  return a + b;
}

inline std::string task_lines(int items) {
  std::string text;
  for (int i = 0; i < items; ++i) {
    text += nlohmann::json{{"question", std::to_string(i) + " + 1"},
                           {"answer", "#### " + std::to_string(i + 1)}}
                .dump() +
            "\n";
  }
  return text;
}

inline FakeReply answer_right(const FakeRequest& request) {
  const int answer = right_answer(request.json.at("prompt"));
  return {.body = completions_reply(" so\n#### " + std::to_string(answer))};
}

inline FakeReply answer_wrong(const FakeRequest&) {
  return {.body = completions_reply(" #### 999999")};
}

// A record as JSON without what no two runs share.
inline std::string lasting(const Record& record) {
  nlohmann::json object = nlohmann::json::parse(to_json_line(record));
  for (const char* key : {"queue_seconds", "first_token_seconds", "total_seconds", "launch"}) {
    object.erase(key);
  }
  return object.dump();
}

class EndpointCommand : public testing::Test {
 protected:
  void write_task(int items) { write_file(task_, task_lines(items)); }

  CommandResult eval(const Words& more, const CommandOptions& options = {}) {
    Words words = {"eval", task_, "--shots", "1", "--records", records_};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words, options);
  }
  CommandResult assay(const Words& more) {
    Words words = {"assay", task_, "--shots", "1", "--records", folder_.path() / "cells"};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words);
  }

  TemporaryFolder folder_;
  std::string task_ = folder_.path() / "sums.jsonl";
  std::string records_ = folder_.path() / "r.jsonl";
};

}  // namespace cupel::test
