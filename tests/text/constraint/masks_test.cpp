// Masks against their definition: a token is allowed if its bytes can be taken one by one and what
// then remains fits the room that is left.
#include "support/expect_error.h"
#include "text/constraint/driver.h"
#include "text/constraint/random_schema.h"
#include "text/constraint/validator.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/text/constraint/automaton.h"
#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_text.h"

namespace cupel {
namespace {

using test::bit;
using test::Json;
using test::mixed_vocabulary;
using test::Random;

Grammar schema_grammar(const Json& schema) {
  Grammar grammar;
  grammar.set_root(add_json_schema(grammar, schema, "schema"));
  return grammar;
}

// Every token, byte by byte.
void expect_mask(GrammarAutomaton& automaton, GrammarAutomaton::ConfigId at,
                 std::span<const std::uint64_t> mask, const std::string& text) {
  const ConstraintVocabulary& v = *mixed_vocabulary();
  for (std::int32_t id = 0; static_cast<std::size_t>(id) < v.words() * 64; ++id) {
    auto to = v.has(id) ? at : GrammarAutomaton::kDead;
    if (v.has(id)) {
      for (const char c : v.bytes(id)) to = automaton.step(to, static_cast<std::uint8_t>(c));
    }
    ASSERT_EQ(bit(mask, static_cast<std::size_t>(id)), to != GrammarAutomaton::kDead)
        << text << " | " << v.bytes(id);
  }
}

TEST(Masks, AreWhatBytesSay) {
  const ConstraintVocabulary& v = *mixed_vocabulary();
  std::size_t states = 0;
  for (std::uint64_t seed = 1000; seed < 1060; ++seed) {
    const Json schema = test::RandomSchema(seed).schema();
    Grammar grammar = schema_grammar(schema);
    GrammarAutomaton automaton(grammar);
    const auto constraint = make_constraint(std::move(grammar), mixed_vocabulary(), "schema");
    Random random(seed);
    for (int output = 0; output < 2; ++output) {
      const auto state = constraint->start();
      auto at = automaton.start();
      std::string text;
      for (int i = 0; i < 25; ++i) {
        const auto mask = state->allowed(1'000'000);
        expect_mask(automaton, at, mask, schema.dump() + '\n' + text);
        if (HasFatalFailure()) return;
        ++states;
        ASSERT_EQ(state->can_end(), automaton.complete(at));
        const auto ids = test::ids_of(mask);
        if (ids.empty()) break;
        const std::int32_t id = ids[random.below(ids.size())];
        for (const char c : v.bytes(id)) at = automaton.step(at, static_cast<std::uint8_t>(c));
        state->advance(id);
        text += v.bytes(id);
      }
    }
  }
  EXPECT_GT(states, 1000U);
}

// The steps of a fresh automaton equal those of one that has seen much: what is kept changes
// nothing.
TEST(Masks, DoNotDependOnWhatWasAskedBefore) {
  const Json schema = test::RandomSchema(5).schema();
  const auto warm = test::schema_constraint(schema);
  Random random(5);
  for (int i = 0; i < 50; ++i) test::random_output(*warm, *mixed_vocabulary(), random, 60);
  for (int i = 0; i < 20; ++i) {
    const auto cold = test::schema_constraint(schema);
    const auto a = warm->start(), b = cold->start();
    for (std::size_t room = 40; room > 0; --room) {
      const auto x = test::ids_of(a->allowed(room)), y = test::ids_of(b->allowed(room));
      ASSERT_EQ(x, y);
      if (x.empty()) break;
      const std::int32_t id = x[random.below(x.size())];
      a->advance(id);
      b->advance(id);
    }
  }
}

// With any limit from the shortest on every output ends in time, and the shortest limit leaves one.
TEST(Masks, EveryLimitFromTheShortestOnIsEnough) {
  const std::vector<Json> schemas = {
      Json::parse(R"({"type":"object","properties":{"name":{"type":"string","minLength":3},
          "tags":{"type":"array","items":{"enum":["red","reddish"]},"minItems":2}},"required":["name","tags"]})"),
      Json::parse(
          R"({"anyOf":[{"type":"null"},{"type":"object","properties":{"a_long_name":{"type":"string"},
          "another_long_name":{"type":"string","minLength":20}},"required":["a_long_name","another_long_name"]}]})"),
      Json::parse(R"({"enum":["internationalization", "a b c", 12345678]})"),
      Json::parse(R"({"type":"string","pattern":"^([0-9]{4}-)+[a-z]{12}$"})"),
      Json::parse(R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"array","minItems":1,
          "items":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/t"}]}}}})"),
      Json::parse("{}")};
  for (const Json& schema : schemas) {
    const auto constraint = test::schema_constraint(schema);
    const test::Validator validator(schema);
    const std::size_t shortest = constraint->shortest();
    ASSERT_GT(shortest, 0U);
    Random random(11);
    for (std::size_t limit = shortest + 1; limit < shortest + 30; ++limit) {
      for (int i = 0; i < 5; ++i) {
        const auto text = test::random_output(*constraint, *mixed_vocabulary(), random, limit);
        ASSERT_TRUE(text) << schema << " within " << limit;
        ASSERT_EQ(validator.errors(*text), "") << *text;
      }
    }
  }
}

// Near the limit a token stays if and only if what it leads to can still be completed.
TEST(Masks, NearTheLimitOnlyWhatStillFitsIsLeft) {
  const auto constraint = test::schema_constraint(Json::parse(
      R"({"anyOf":[{"const":"x"},{"const":"abcdefgh"},{"type":"array","maxItems":0}]})"));
  const ConstraintVocabulary& v = *mixed_vocabulary();
  const auto first_bytes = [&](std::size_t room) {
    std::set<std::string> texts;
    const auto state = constraint->start();
    for (const std::int32_t id : test::ids_of(state->allowed(room))) {
      texts.emplace(v.bytes(id));
    }
    return texts;
  };
  EXPECT_EQ(constraint->shortest(), v.fewest_tokens("[]").size());
  const auto tight = first_bytes(constraint->shortest());
  EXPECT_TRUE(tight.contains("["));
  EXPECT_TRUE(first_bytes(100).contains("\""));
  EXPECT_FALSE(tight.contains("\"abcdefgh"));
  for (std::size_t room = 1; room < 12; ++room) {
    const auto now = first_bytes(room), more = first_bytes(room + 1);
    EXPECT_TRUE(std::includes(more.begin(), more.end(), now.begin(), now.end())) << room;
  }
}

TEST(Masks, FixedTextAddedTokensAndValuesFollowOneAnother) {
  Grammar g;
  const ExprId number = add_json_schema(g, Json::parse(R"({"type":"integer"})"), "n");
  const ExprId flag = add_json_schema(g, Json::parse(R"({"type":"boolean"})"), "b");
  // Twice the token around either of two calls.
  const ExprId call = g.token(3000);
  g.set_root(g.sequence(
      {call,
       g.choice({g.sequence({g.literal("n="), number}), g.sequence({g.literal("flag="), flag})}),
       call}));
  const auto constraint = make_constraint(std::move(g), mixed_vocabulary(), "calls");
  EXPECT_TRUE(constraint->uses(3000));
  EXPECT_TRUE(constraint->uses('a'));
  EXPECT_FALSE(constraint->uses(3001));
  const auto state = constraint->start();
  EXPECT_EQ(test::ids_of(state->allowed(50)), std::vector<std::int32_t>{3000});
  state->advance(3000);
  for (const char c : std::string("flag=true")) {
    ASSERT_TRUE(bit(state->allowed(50), static_cast<std::uint8_t>(c)));
    EXPECT_FALSE(bit(state->allowed(50), 3000));
    state->advance(static_cast<std::uint8_t>(c));
  }
  EXPECT_FALSE(state->can_end());
  EXPECT_EQ(test::ids_of(state->allowed(50)), std::vector<std::int32_t>{3000});
  state->advance(3000);
  EXPECT_TRUE(state->can_end());
  EXPECT_TRUE(test::ids_of(state->allowed(50)).empty());
  // The shortest: <call>n=0<call>.
  EXPECT_EQ(constraint->shortest(), 2 + mixed_vocabulary()->fewest_tokens("n=0").size());
}

TEST(Masks, ATokenThatWasNotAllowedLeavesNothing) {
  const auto constraint = test::schema_constraint({{"const", 1}});
  const auto state = constraint->start();
  state->advance('x');
  EXPECT_TRUE(test::ids_of(state->allowed(10)).empty());
  EXPECT_FALSE(state->can_end());
}

TEST(Masks, AGrammarNeedsAFiniteText) {
  Grammar endless;
  const ExprId rule = endless.declare();
  endless.define(rule, endless.sequence({endless.literal("a"), rule}));
  endless.set_root(rule);
  test::expect_input_error([&] { make_constraint(endless, mixed_vocabulary(), "endless"); },
                           {"endless", "finite"});
  Grammar long_one;
  long_one.set_root(
      long_one.repeat(long_one.literal("ab"), kMaxShortestBytes, Grammar::kUnbounded));
  test::expect_input_error([&] { make_constraint(long_one, mixed_vocabulary(), "long"); },
                           {"long", "131072"});
}

// A plain repetition that something other than a quote follows, within and beyond its room.
TEST(Masks, TablesOfPlainTokensHoldInAnyGrammar) {
  for (const std::uint32_t most : {3U, 6U, Grammar::kUnbounded}) {
    for (const char* after : {"\"", "ab", "</"}) {
      Grammar g;
      JsonText json(g, {});
      g.set_root(g.sequence({g.repeat(json.any_usual_character(), 1, most), g.literal(after)}));
      GrammarAutomaton automaton(g);
      const auto constraint = make_constraint(std::move(g), mixed_vocabulary(), "plain");
      const auto state = constraint->start();
      auto at = automaton.start();
      for (const char c : std::string("xab")) {
        expect_mask(automaton, at, state->allowed(1'000'000), after);
        at = automaton.step(at, static_cast<std::uint8_t>(c));
        state->advance(static_cast<std::uint8_t>(c));
      }
      expect_mask(automaton, at, state->allowed(1'000'000), after);
    }
  }
}

}  // namespace
}  // namespace cupel
