// The probe nll: how likely a target finds fixed texts. One number a token, far more sensitive than
// right and wrong answers.
#pragma once

#include "cupel/eval/probe/probe.h"

namespace cupel {

// Fault: the mean negative log-likelihood of a text's tokens but the first, in nats. Throws
// InputError without texts and where the target does not return log probabilities of a prompt.
ProbeResult probe_nll(Target& target, std::span<const std::string> texts);

}  // namespace cupel
