// The determinism contract of the engine (DESIGN section 5): the logits of every output token of
// every prompt under one changed condition, against a baseline, bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cupel/engine/engine.h"

namespace cupel::test {

// Of each request a hash of the logits [vocab] of each output token.
using Bits = std::vector<std::vector<std::string>>;

// Prompts of lengths over all residues mod 4 and around multiples of 128, some sharing a beginning,
// some sampled.
std::vector<GenerationRequest> contract_requests(std::size_t count);

// Each by itself, every prompt whole, no prefix kept, one thread.
Bits baseline(EngineOptions options, const std::vector<GenerationRequest>& requests);

// Submits the requests in the given order, `at_once` before each step as they come.
Bits run_together(Engine& engine, const std::vector<GenerationRequest>& requests,
                  const std::vector<std::size_t>& order, std::size_t at_once);

struct Condition {
  std::string name;
  std::function<Bits()> run;
};
// One condition at a time: those of the long test, or a part of them.
std::vector<Condition> conditions(const EngineOptions& options,
                                  const std::vector<GenerationRequest>& requests, bool full);

// Requests whose bits differ.
std::size_t differences(const Bits& actual, const Bits& expected);

}  // namespace cupel::test
