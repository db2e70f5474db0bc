// Requests with a constraint: their outputs have the form, and nothing else changes.
#include <cmath>

#include "engine/engine_support.h"
#include "support/expect_error.h"
#include "text/constraint/driver.h"
#include "text/constraint/random_schema.h"
#include "text/constraint/validator.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/text/constraint/after_token.h"
#include "cupel/text/token_constraint.h"

namespace cupel {
namespace {

using test::Json;
using test::text_ids;

class Constraints : public testing::Test {
 protected:
  std::shared_ptr<const TokenConstraint> constraint(const Json& schema) {
    return test::schema_constraint(schema, vocabulary_);
  }
  GenerationRequest request(const Json& schema, std::size_t beyond_shortest, std::uint64_t seed) {
    GenerationRequest r;
    r.constraint = constraint(schema);
    r.prompt_ids = text_ids(10 * (seed % 20), 5 + seed % 60);
    r.max_new_tokens = static_cast<int>(r.constraint->shortest() + 1 + beyond_shortest);
    if (seed % 3 > 0) r.sampling = {.temperature = 1.5F, .seed = seed};
    return r;
  }

  Engine engine_{test::engine_options(BackendKind::kUnified)};
  std::shared_ptr<const ConstraintVocabulary> vocabulary_ =
      std::make_shared<const ConstraintVocabulary>(engine_.tokenizer());
};

const Json& person() {
  static const Json schema = Json::parse(R"({"type":"object","properties":{
      "name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":0,"maximum":150},
      "tags":{"type":"array","items":{"enum":["red","green"]},"maxItems":3}},
      "required":["name","age"],"additionalProperties":false})");
  return schema;
}

TEST_F(Constraints, OutputsOfRandomSchemasValidate) {
  std::vector<Json> schemas;
  std::vector<GenerationRequest> requests;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    schemas.push_back(test::RandomSchema(seed).schema());
    requests.push_back(request(schemas.back(), seed % 4 == 0 ? 0 : seed % 40, seed));
  }
  const auto together = test::generate(engine_, requests, 0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(schemas[i]);
    EXPECT_EQ(together[i].finish, FinishReason::kEos);
    EXPECT_EQ(test::Validator(schemas[i]).errors(together[i].text), "") << together[i].text;
  }
  // Alone, from a cold prefix cache and new masks, the same.
  engine_.flush_prefixes();
  for (std::size_t i = 0; i < requests.size(); i += 7) {
    requests[i].constraint = constraint(schemas[i]);
    test::expect_same(test::generate_alone(engine_, requests[i]), together[i]);
  }
}

TEST_F(Constraints, PreemptionLeavesTheFormAlone) {
  std::vector<GenerationRequest> requests;
  for (std::uint64_t seed = 0; seed < 8; ++seed) requests.push_back(request(person(), 60, seed));
  // Two fit, until their outputs begin a second page.
  for (GenerationRequest& r : requests) r.prompt_ids = text_ids(0, 250);
  const auto roomy = test::generate(engine_, requests, 0);
  EngineOptions options = test::engine_options(BackendKind::kUnified);
  options.prefix_cache = false;
  options.max_cache_bytes = engine_.network().sequence_bytes(kPageTokens) +
                            engine_.network().sequence_bytes(2 * kPageTokens);
  Engine tight(options);
  const auto pressed = test::generate(tight, requests, 0);
  int preemptions = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    test::expect_same(pressed[i], roomy[i]);
    EXPECT_EQ(test::Validator(person()).errors(roomy[i].text), "") << roomy[i].text;
    preemptions += pressed[i].preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST_F(Constraints, CompanyWithoutAConstraintIsNotTouched) {
  GenerationRequest plain{.prompt_ids = text_ids(0, 90), .max_new_tokens = 30};
  const Generation alone = test::generate_alone(engine_, plain);
  const auto mixed =
      test::generate(engine_, {request(person(), 40, 1), plain, request(person(), 40, 2)}, 0);
  test::expect_same(mixed[1], alone);
}

TEST_F(Constraints, EveryLimitFromTheShortestOn) {
  const int shortest = static_cast<int>(constraint(person())->shortest()) + 1;
  for (int limit = shortest; limit < shortest + 20; ++limit) {
    GenerationRequest r = request(person(), 0, 4);
    r.max_new_tokens = limit;
    const Generation g = test::generate_alone(engine_, r);
    EXPECT_EQ(g.finish, FinishReason::kEos) << limit;
    EXPECT_LE(g.output_ids.size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(test::Validator(person()).errors(g.text), "") << g.text;
  }
  GenerationRequest r = request(person(), 0, 4);
  r.max_new_tokens = shortest - 1;
  test::expect_input_error([&] { engine_.submit(r); },
                           {"request", "max_new_tokens", std::to_string(shortest), "shortest"});
}

TEST_F(Constraints, WhatWouldBreakTheFormIsRefused) {
  const auto refused = [&](auto change, const char* part) {
    GenerationRequest r = request(person(), 30, 0);
    change(r);
    test::expect_input_error([&] { engine_.submit(r); }, {"request", part});
  };
  refused([](GenerationRequest& r) { r.ignore_eos = true; }, "ignore_eos");
  refused([](GenerationRequest& r) { r.min_new_tokens = 1; }, "min_new_tokens");
  refused([](GenerationRequest& r) { r.stop = {"}"}; }, "stop strings");
  refused([&](GenerationRequest& r) { r.stop_ids = engine_.tokenizer().encode("}"); }, "stop_ids");
  GenerationRequest r = request(person(), 30, 0);
  r.stop_ids = engine_.tokenizer().encode("<｜User｜>");
  EXPECT_NO_THROW(engine_.validate(r, "request"));
}

// A bias towards the end does not cut, one towards what is forbidden does not break the form.
TEST_F(Constraints, PenaltiesAndBiasComeFirst) {
  GenerationRequest r =
      request(Json::parse(R"({"type":"array","minItems":3,"items":{"type":"integer"}})"), 60, 0);
  const auto user = engine_.tokenizer().encode("<｜User｜>");
  r.stop_ids = user;
  r.logit_bias = {{engine_.config().eos_token_id, 50.F},
                  {user[0], 100.F},
                  {engine_.tokenizer().encode("x")[0], 200.F}};
  r.sampling.repetition_penalty = 1.3F;
  const Generation g = test::generate_alone(engine_, r);
  EXPECT_EQ(g.finish, FinishReason::kEos);
  EXPECT_EQ(g.output_ids.back(), user[0]);
  EXPECT_EQ(nlohmann::json::parse(g.text).size(), 3U) << g.text;
}

TEST_F(Constraints, MarginsAreOfTheTokensAllowed) {
  const GenerationRequest r = request(person(), 30, 0);
  const auto state = r.constraint->start();
  std::vector<float> expected;
  std::size_t room = static_cast<std::size_t>(r.max_new_tokens) - 1;
  Generation g;
  std::vector<std::vector<float>> rows;
  engine_.submit(
      r,
      {.on_logits = [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); },
       .on_token = {},
       .on_done = [&](const Generation& done) { g = done; }});
  while (engine_.step()) {
  }
  ASSERT_EQ(rows.size(), g.output_ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i, --room) {
    std::vector<float> open;
    for (const std::int32_t id : test::ids_of(state->allowed(room)))
      open.push_back(rows[i][static_cast<std::size_t>(id)]);
    if (state->can_end())
      open.push_back(rows[i][static_cast<std::size_t>(engine_.config().eos_token_id)]);
    std::sort(open.rbegin(), open.rend());
    expected.push_back(open.size() > 1 ? open[0] - open[1] : INFINITY);
    if (i + 1 < rows.size()) state->advance(g.output_ids[i]);
  }
  EXPECT_EQ(g.margins, expected);  // to the bit
  EXPECT_EQ(g.min_margin, *std::min_element(expected.begin(), expected.end()));
}

TEST_F(Constraints, TheFormMayBeginAfterReasoning) {
  const std::int32_t marker = engine_.tokenizer().encode("</think>").at(0);
  for (const int extra : {0, 1, 5, 60}) {
    GenerationRequest r = request(person(), 0, 1);
    r.constraint = after_token(marker, engine_.tokenizer().id_limit(), r.constraint);
    r.max_new_tokens = static_cast<int>(r.constraint->shortest()) + 1 + extra;
    const Generation g = test::generate_alone(engine_, r);
    EXPECT_EQ(g.finish, FinishReason::kEos);
    const auto at = g.text.find("</think>");
    ASSERT_NE(at, std::string::npos) << g.text;
    EXPECT_EQ(test::Validator(person()).errors(g.text.substr(at + 8)), "") << g.text;
  }
}

}  // namespace
}  // namespace cupel
