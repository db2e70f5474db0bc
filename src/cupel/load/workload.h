// What a benchmark asks: prompts and lengths drawn from a seed, so that a run can be repeated and
// no two prompts of it share more of their beginning than chance gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cupel {

struct LoadPrompt {
  std::vector<std::int32_t> ids;  // each uniform in [0, vocabulary)
  std::string text;               // in place of ids where the vocabulary is 0
  int output_len = 0;             // tokens asked for
};

// As SGLang draws its random data (serving-stack.md section D): lengths are uniform in
// [max(1, floor(range_ratio * length)), length].
struct Workload {
  int input_len = 1024;
  int output_len = 1024;
  double range_ratio = 1;
  // Ids to draw from; 0: prompts of text, one random letter after a blank for each token, for
  // interfaces that take no ids. Most tokenizers make a token of each; the server's count is what
  // is reported.
  int vocabulary = 0;
};

// Throws InputError for a length below 1, a ratio outside [0, 1], or a negative vocabulary.
void check_workload(const Workload& workload);

// A function of its arguments alone.
LoadPrompt draw_prompt(const Workload& workload, std::uint64_t seed);

}  // namespace cupel
