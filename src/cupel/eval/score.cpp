#include "cupel/eval/score.h"

namespace cupel {

Score score(std::span<const Record> records) {
  Score s;
  std::int64_t strict = 0;
  std::int64_t invalid = 0;
  std::int64_t truncated = 0;
  for (const Record& r : records) {
    ++s.answers;
    s.correct += r.correct ? 1 : 0;
    strict += r.correct_strict ? 1 : 0;
    invalid += r.invalid ? 1 : 0;
    truncated += r.stop_reason == StopReason::kLength ? 1 : 0;
    s.prompt_tokens += r.prompt_tokens;
    s.completion_tokens += r.completion_tokens;
  }
  if (s.answers == 0) return s;
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(s.answers);
  };
  s.accuracy = share(s.correct);
  s.strict_accuracy = share(strict);
  s.invalid_share = share(invalid);
  s.truncated_share = share(truncated);
  return s;
}

}  // namespace cupel
