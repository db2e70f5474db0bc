// What a set of records adds up to.
#pragma once

#include <cstdint>
#include <span>

#include "cupel/eval/record.h"

namespace cupel {

// Shares are of all answers, in [0, 1]; all zero where there is no answer.
struct Score {
  std::int64_t answers = 0;  // items x repeats
  std::int64_t correct = 0;
  double accuracy = 0;
  double strict_accuracy = 0;
  double invalid_share = 0;    // no digit in the text
  double truncated_share = 0;  // stopped by max_new_tokens
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

Score score(std::span<const Record> records);

}  // namespace cupel
