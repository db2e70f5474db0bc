// Probes: what a score on word problems cannot see (anchors.md section 3.6).
//
// A probe asks a target prompts of its own, or looks at answers that are there, and gives each a
// fault: 0 where all is well, more where it is not. Cells are compared by it, prompt by prompt
// (assay/probe_verdict.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cupel/eval/target.h"

namespace cupel {

enum class ProbeKind { kRepeatability, kPhase, kCopy, kNll, kStray };

// "repeatability", "phase", "copy", "nll" or "stray". Throws InputError.
ProbeKind parse_probe(std::string_view name);
std::string_view probe_name(ProbeKind kind);

struct ProbeItem {
  int id = 0;               // equal in every cell for the same prompt or text
  std::string prompt_hash;  // cells are compared where it is equal
  double fault = 0;         // a share in [0, 1]; for nll the nats a token
};

struct ProbeResult {
  ProbeKind kind = ProbeKind::kRepeatability;
  std::string what;  // what the mean fault is: "prompts with more than one text"
  std::vector<ProbeItem> items;
  std::vector<std::string> lines;  // details for a reader, one sentence each
};

// Asks all requests and gives their completions in that order. Throws InfrastructureError if one
// got no answer.
std::vector<Completion> ask_all(Target& target, std::span<const CompletionRequest> requests,
                                int concurrency, std::string_view probe);

// A number that follows from its arguments alone, in [low, high].
int stable_number(std::string_view name, int index, int low, int high);

}  // namespace cupel
