#include "cupel/cli/sampling_flags.h"

#include <CLI/CLI.hpp>

namespace cupel {

void add_sampling_flags(CLI::App& app, SamplingParams& params) {
  app.add_option("--temperature", params.temperature, "0 = the most likely token every time")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", params.seed, "For temperature above 0")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top-k", params.top_k, "Choose among the k most likely tokens; 0 = all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top-p", params.top_p,
                 "Choose among the fewest tokens whose probabilities reach this")
      ->capture_default_str();
  app.add_option("--min-p", params.min_p,
                 "Choose among tokens of at least this share of the largest probability")
      ->capture_default_str();
  app.add_option("--repetition-penalty", params.repetition_penalty,
                 "Divides positive logits of tokens in prompt or output, multiplies negative ones")
      ->capture_default_str();
  app.add_option("--frequency-penalty", params.frequency_penalty,
                 "Subtracted from a logit for each time its token is in the output")
      ->capture_default_str();
  app.add_option("--presence-penalty", params.presence_penalty,
                 "Subtracted from the logits of tokens in the output")
      ->capture_default_str();
}

}  // namespace cupel
