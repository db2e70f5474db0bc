#include "cupel/text/constraint/json_schema.h"

#include "support/expect_error.h"
#include "text/constraint/driver.h"
#include "text/constraint/random_schema.h"
#include "text/constraint/validator.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using test::Json;
using test::mixed_vocabulary;
using test::Random;
using test::schema_constraint;

constexpr std::uint64_t kSchemas = 500;

// Each line of the issue's promise: whatever comes out in full parses and validates.
TEST(JsonSchema, OutputsOfRandomSchemasValidate) {
  std::size_t ended = 0;
  for (std::uint64_t seed = 0; seed < kSchemas; ++seed) {
    const Json schema = test::RandomSchema(seed).schema();
    const auto constraint = schema_constraint(schema);
    const test::Validator validator(schema);
    Random random(seed);
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t limit = constraint->shortest() + 1 + random.below(i % 2 == 0 ? 6 : 80);
      const auto text = test::random_output(*constraint, *mixed_vocabulary(), random, limit);
      ASSERT_TRUE(text) << schema << "\nwithin " << limit << " tokens";
      ASSERT_EQ(validator.errors(*text), "") << schema << '\n' << *text;
      ++ended;
    }
  }
  EXPECT_EQ(ended, kSchemas * 6);
}

// The other side: what validates, in the forms promised, is never forbidden.
TEST(JsonSchema, ValuesOfRandomSchemasAreAllowed) {
  for (std::uint64_t seed = 0; seed < kSchemas; ++seed) {
    test::RandomSchema source(seed);
    const Json schema = source.schema();
    const auto constraint = schema_constraint(schema);
    const test::Validator validator(schema);
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const std::string text = source.text(source.value(schema), schema);
      ASSERT_EQ(validator.errors(text), "") << schema << '\n' << text;
      ASSERT_EQ(test::refused(*constraint, *mixed_vocabulary(), text, random), "") << schema << '\n'
                                                                                   << text;
    }
  }
}

struct Case {
  const char* schema;
  std::vector<const char*> accepted, rejected;
};

void expect_cases(std::span<const Case> cases) {
  Random random(1);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.schema);
    const auto constraint = schema_constraint(Json::parse(c.schema));
    for (const char* text : c.accepted) {
      EXPECT_EQ(test::refused(*constraint, *mixed_vocabulary(), text, random), "");
    }
    for (const char* text : c.rejected) {
      EXPECT_NE(test::refused(*constraint, *mixed_vocabulary(), text, random), "") << text;
    }
  }
}

TEST(JsonSchema, Keywords) {
  const std::vector<Case> cases = {
      {R"({})",
       {R"({"a": [1, null]})", "-0.5e+10", R"("x")"},
       {"", "01", "[1,]", "{\"a\"}", "nul"}},
      {R"({"type":"string"})",
       {R"("")", R"("\ud83d\ude00 \u00e9 \" \\ \/ \b\f\n\r\t")", "\"日本\""},
       {R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\x")", "\"\n\"", R"("\u0000")",
        "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\""}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("日本語")", R"("\ud83d\ude00x")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
      {R"({"type":"integer"})", {"0", "-7", "999999999999999999"}, {"1.0", "1e3", "-", "00"}},
      {R"({"type":["integer","null"],"minimum":0})", {"0", "null"}, {"-1", "true"}},
      {R"({"enum":["a",1,null],"type":["string","null"]})", {R"("a")", "null"}, {"1"}},
      {R"({"enum":["a","abc"],"maxLength":2})", {R"("a")"}, {R"("abc")"}},
      {R"({"const":{"a":[1]}})", {R"({"a":[1]})"}, {R"({"a":[2]})"}},
      {R"({"properties":{"a":{"type":"integer"},"b":{}},"required":["a"]})",
       {R"({"a":1})", R"({"a": 1, "b": 2})"},
       {R"({})", R"({"b":2,"a":1})", R"({"a":1,"c":1})", R"({"a":1,})", R"({"a":1,"a":1})"}},
      {R"({"properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}})",
       {R"({})", R"({"a":1,"b":"x"})", R"({"b":"x","ab":"y","":"z"})"},
       {R"({"b":1})", R"({"b":"x","a":"y"})", R"({"b":"x","\u0061":"y"})"}},
      {R"({"type":"object","required":["z"],"additionalProperties":{"type":"integer"}})",
       {R"({"z":1})", R"({"z":1,"y":2})"},
       {R"({})", R"({"z":"a"})"}},
      {R"({"type":"object"})", {"{}", R"({"a":{"b":[]}})"}, {"[]"}},
      {R"({"items":{"type":"integer"},"minItems":1,"maxItems":2})",
       {"[1]", "[1, 2]"},
       {"[]", "[1,2,3]", "[ 1]", "[1,  2]", "[1 ,2]"}},
      {R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})",
       {"[]", "[1]", R"([1,"a"])"},
       {R"(["a"])", R"([1,"a",1])"}},
      {R"({"prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2,"maxItems":3})",
       {"[1,null]", "[1,null,null]"},
       {"[1]", "[1,null,null,null]", "[1,1]"}},
      {R"({"allOf":[{"properties":{"a":{"minimum":1}}},{"properties":{"a":{"type":"integer"},"b":{"type":"null"}},
           "required":["a"]}]})",
       {R"({"a":1})", R"({"a":5,"b":null})"},
       {R"({"a":0})", R"({"b":null})"}},
      {R"({"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n","minimum":3})", {"3"}, {"2"}},
      {R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})", {"null"}, {"1"}},
      {R"({"properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]})",
       {R"({"next":{"next":null}})"},
       {R"({"next":{}})"}},
      {R"({"oneOf":[{"type":"string"},{"type":"integer"}]})", {"1", R"("a")"}, {"null"}},
      {R"({"oneOf":[{"type":"object","properties":{"t":{"const":1}},"required":["t"]},
                   {"type":"object","properties":{"t":{"enum":[2,3]}},"required":["t"]}]})",
       {R"({"t":1})", R"({"t":3})"},
       {R"({"t":4})", "{}"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-28")"},
       {R"("2024-02-30")", R"("2024-13-01")"}},
      {R"({"anyOf":[false,{"const":"x"}]})", {R"("x")"}, {"1"}},
  };
  expect_cases(cases);
}

TEST(JsonSchema, CompactStyleHasNoSpaces) {
  Grammar grammar;
  grammar.set_root(add_json_object(grammar, {.spaces = false}));
  const auto constraint = make_constraint(std::move(grammar), mixed_vocabulary(), "object");
  Random random(2);
  EXPECT_EQ(test::refused(*constraint, *mixed_vocabulary(), R"({"a":[1,2]})", random), "");
  EXPECT_NE(test::refused(*constraint, *mixed_vocabulary(), R"({"a": 1})", random), "");
  EXPECT_NE(test::refused(*constraint, *mixed_vocabulary(), "[]", random), "");
  EXPECT_LE(constraint->shortest(), 2U);
}

TEST(JsonSchema, Refusals) {
  const std::vector<std::vector<std::string>> cases = {
      // schema, and what the message must say
      {R"({"type":"integer","multipleOf":2})", "the whole schema", "multipleOf"},
      {R"({"properties":{"a/b":{"not":{}}}})", "/properties/a~1b", "not"},
      {R"({"patternProperties":{}})", "patternProperties"},
      {R"({"items":{"uniqueItems":true}})", "/items/uniqueItems"},
      {R"({"minProperties":1})", "minProperties"},
      {R"({"if":{}})", "if"},
      {R"({"type":"strin"})", "/type", "strin"},
      {R"({"type":[]})", "/type"},
      {R"({"properties":[]})", "/properties", "an object of schemas"},
      {R"({"properties":{"a":3}})", "/properties/a", "a schema"},
      {R"({"items":[{}]})", "/items", "a schema"},
      {R"({"required":[1]})", "/required"},
      {R"({"minLength":-1})", "/minLength"},
      {R"({"minItems":1.5})", "/minItems"},
      {R"({"exclusiveMinimum":true})", "/exclusiveMinimum", "a number"},
      {R"({"minimum":0.12345678901234567})", "15 digits"},
      {R"({"type":"number","minimum":1e300})", "15 digits"},
      {R"({"enum":[]})", "/enum"},
      {R"({"anyOf":[]})", "/anyOf"},
      {R"({"format":"duration"})", "/format", "date-time"},
      {R"({"$ref":"other.json"})", "/$ref"},
      {R"({"$ref":"#/$defs/none"})", "/$ref", "#/$defs/none"},
      {R"({"const":{"a":{}},"$ref":"#/const"})", "/$ref"},
      {R"j({"pattern":"(?=a)"})j", "/pattern", "(?"},
      {R"j({"pattern":"a\\b"})j", "/pattern", "\\b"},
      {R"j({"pattern":"(a)\\1"})j", "/pattern", "\\1"},
      {R"j({"pattern":"a^b"})j", "/pattern", "^ only"},
      {R"j({"pattern":"(a$)"})j", "/pattern", "$ only"},
      {R"j({"pattern":"[z-a]"})j", "/pattern"},
      {R"j({"pattern":"(a"})j", "/pattern"},
      {R"j({"pattern":"((a{99}){99}){99}"})j", "/pattern", "states"},
      {R"j({"pattern":"a","minLength":1})j", "several"},
      {R"({"type":"string","minLength":70000})", "65536"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "one that none does"},
      {R"(false)", "one that none does"},
      {R"({"$ref":"#"})", "one that none does"},
      {R"({"properties":{"a":{"$ref":"#"}},"required":["a"]})", "one that none does"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", "one that none does"},
      {R"({"allOf":[{"$ref":"#"},{"type":"object"}]})", "leads back to itself"},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "pattern twice"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "/oneOf", "numbers 0 and 1"},
      {R"({"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})", "/oneOf"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c[0]);
    test::expect_input_error([&] { schema_constraint(Json::parse(c[0])); },
                             {c.begin() + 1, c.end()});
  }
}

TEST(JsonSchema, DepthAndSizeAreBounded) {
  Json deep = Json::object();
  for (int i = 0; i < 10000; ++i) deep = {{"items", std::move(deep)}};
  EXPECT_THROW(schema_constraint(deep), InputError);
  EXPECT_THROW(schema_constraint({{"enum", Json(100'000, 1)}}), InputError);
  // Doubles with every level.
  Json doubling = {{"$ref", "#/$defs/d0"}};
  for (int i = 0; i < 30; ++i) {
    const Json next = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
    doubling["$defs"]["d" + std::to_string(i)] = {{"allOf", Json::array({next, next})}};
  }
  doubling["$defs"]["d30"] = Json::object();
  EXPECT_THROW(schema_constraint(doubling), InputError);
  // Many values are no trouble.
  Json values = Json::array();
  for (int i = 0; i < 20000; ++i) values.push_back("value " + std::to_string(i * 7));
  Random random(3);
  EXPECT_EQ(test::refused(*schema_constraint({{"enum", values}}), *mixed_vocabulary(),
                          R"("value 139993")", random),
            "");
}

}  // namespace
}  // namespace cupel
