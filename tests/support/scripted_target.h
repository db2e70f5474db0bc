// A target whose answers are a script of the test.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cupel/eval/target.h"

namespace cupel::test {

// Prompts count a token a blank-separated word.
inline int word_count(const std::string& text) {
  int words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    words += !blank && !inside ? 1 : 0;
    inside = !blank;
  }
  return words;
}

class ScriptedTarget : public Target {
 public:
  // The text for a request; `company` is the number of requests asked together.
  using Script = std::function<Completion(const CompletionRequest&, std::size_t company)>;

  explicit ScriptedTarget(Script script) : script_(std::move(script)) {}

  void complete(std::span<const CompletionRequest> requests, int,
                const std::function<void(std::size_t, const Completion&)>& done) override {
    for (std::size_t i = requests.size(); i-- > 0;) {
      Completion c = script_(requests[i], requests.size());
      if (c.stop_reason == StopReason::kError && c.error.empty()) {
        c.stop_reason = StopReason::kStopString;
      }
      if (c.prompt_tokens == 0) c.prompt_tokens = word_count(requests[i].prompt);
      done(i, c);
    }
  }
  std::string model_fingerprint() const override { return "scripted"; }

 private:
  Script script_;
};

}  // namespace cupel::test
