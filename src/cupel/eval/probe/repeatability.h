// The same prompts alone, in a crowd, alone after a crowd, and in another order.
#pragma once

#include "cupel/eval/probe/probe.h"

namespace cupel {

// Where two answers part.
struct FirstDifference {
  bool tokens = false;  // `at` counts tokens; else bytes, where the target shows no ids
  std::size_t at = 0;
};

// nullopt for equal answers. Compares ids where both have them, else text.
std::optional<FirstDifference> first_difference(const Completion& a, const Completion& b);

// `requests` as they would be asked, at temperature 0. Each is asked four times: by itself; all
// together; by itself again; and in reverse order, half of them at a time. Fault: 1 for a prompt
// with more than one text. Differences are described with the margin of the two best tokens where
// they part, as far as the target shows margins. Throws InputError without requests.
ProbeResult probe_repeatability(Target& target, std::span<const CompletionRequest> requests);

}  // namespace cupel
