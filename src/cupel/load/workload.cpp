#include "cupel/load/workload.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/engine/sampler.h"

namespace cupel {
namespace {

int draw_below(int bound, std::uint64_t seed, std::uint64_t step) {
  return static_cast<int>(uniform(seed, step) * bound);
}

int draw_length(int longest, double ratio, std::uint64_t seed, std::uint64_t step) {
  const int shortest = std::max(1, static_cast<int>(std::floor(ratio * longest)));
  return shortest + draw_below(longest - shortest + 1, seed, step);
}

}  // namespace

void check_workload(const Workload& w) {
  if (w.input_len < 1) throw InputError("--input-len", "1 or more", std::to_string(w.input_len));
  if (w.output_len < 1) throw InputError("--output-len", "1 or more", std::to_string(w.output_len));
  if (!(w.range_ratio >= 0 && w.range_ratio <= 1)) {
    throw InputError("--range-ratio", "0 to 1", fmt::format("{:g}", w.range_ratio));
  }
  if (w.vocabulary < 0) throw InputError("--vocabulary", "1 or more", std::to_string(w.vocabulary));
}

LoadPrompt draw_prompt(const Workload& w, std::uint64_t seed) {
  constexpr int kLetters = 26;
  std::uint64_t step = 0;
  LoadPrompt prompt;
  const int input_len = draw_length(w.input_len, w.range_ratio, seed, step++);
  prompt.output_len = draw_length(w.output_len, w.range_ratio, seed, step++);
  for (int i = 0; i < input_len; ++i, ++step) {
    if (w.vocabulary > 0) {
      prompt.ids.push_back(draw_below(w.vocabulary, seed, step));
    } else {
      prompt.text += ' ';
      prompt.text += static_cast<char>('a' + draw_below(kLetters, seed, step));
    }
  }
  return prompt;
}

}  // namespace cupel
