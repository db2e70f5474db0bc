// What the tests of the engine share: engines over the bundled checkpoints, and running requests.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/golden.h"
#include <gtest/gtest.h>

#include "cupel/engine/engine.h"

namespace cupel::test {

inline std::filesystem::path bundled(const std::string& name) {
  return std::filesystem::path(CUPEL_SOURCE_DIR) / "models" / name;
}

inline EngineOptions engine_options(BackendKind backend, KvDtype kv_dtype = KvDtype::kAuto) {
  return {.model = bundled("tiny-v4-0731"),
          .network = {.backend = backend, .kv_dtype = kv_dtype},
          .threads = 2};
}

// Runs the requests; every one of them must be reported exactly once.
inline std::vector<Generation> generate(Engine& engine,
                                        const std::vector<GenerationRequest>& requests,
                                        int concurrency) {
  std::vector<Generation> results(requests.size());
  std::vector<int> reported(requests.size());
  engine.generate(requests, concurrency, [&](std::size_t i, const Generation& g) {
    results.at(i) = g;
    ++reported.at(i);
  });
  EXPECT_EQ(reported, std::vector<int>(requests.size(), 1));
  return results;
}

inline Generation generate_alone(Engine& engine, const GenerationRequest& request) {
  return generate(engine, {request}, 1).at(0);
}

// The first `length` ids of the golden few-shot text from `begin` on.
inline std::vector<std::int32_t> text_ids(std::size_t begin, std::size_t length) {
  static const std::vector<std::int32_t> ids =
      Golden("official.golden.safetensors").get("text_ids").ints;
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(begin + length)};
}

// The part of a result that must not depend on company.
inline void expect_same(const Generation& actual, const Generation& expected) {
  EXPECT_EQ(actual.output_ids, expected.output_ids);
  EXPECT_EQ(actual.text, expected.text);
  EXPECT_EQ(actual.finish, expected.finish);
  EXPECT_EQ(actual.min_margin, expected.min_margin);  // to the bit
  EXPECT_EQ(actual.min_margin_step, expected.min_margin_step);
}

}  // namespace cupel::test
