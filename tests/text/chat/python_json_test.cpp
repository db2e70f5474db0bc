#include "cupel/text/chat/python_json.h"

#include <gmock/gmock.h>

#include "cupel/text/chat/openai_messages.h"

namespace cupel {
namespace {

std::string dumped(const std::string& text) {
  return python_json(parse_chat_json(text, "test"));
}

// Expected texts: Python's json.dumps(json.loads(text), ensure_ascii=False).
TEST(PythonJson, WritesAsPythonDoes) {
  EXPECT_EQ(dumped(R"({"b":1,"a":[],"c":{},"d":[1,[2,{"e":null}]]})"),
            R"({"b": 1, "a": [], "c": {}, "d": [1, [2, {"e": null}]]})");
  EXPECT_EQ(dumped(R"([true,false,-0,-7,18446744073709551615])"),
            "[true, false, 0, -7, 18446744073709551615]");
  EXPECT_EQ(dumped(R"("\u00e9 \u007f \u0001 \/ \" \\ \n \r \t \b \f 气")"),
            "\"é \x7f \\u0001 / \\\" \\\\ \\n \\r \\t \\b \\f 气\"");
  EXPECT_EQ(dumped(R"({"a":1,"b":2,"a":3})"), R"({"a": 3, "b": 2})");
}

TEST(PythonJson, WritesFloatsAsRepr) {
  EXPECT_EQ(dumped("[1.0, -0.0, 0.1, 100.5, 5e-324, 1.7976931348623157e308]"),
            "[1.0, -0.0, 0.1, 100.5, 5e-324, 1.7976931348623157e+308]");
  EXPECT_EQ(dumped("[0.0001, 0.00001, 0.00012345, 1e15, 9999999999999998.0, 1e16, 1.5e22]"),
            "[0.0001, 1e-05, 0.00012345, 1000000000000000.0, 9999999999999998.0, 1e+16, 1.5e+22]");
}

using Members = std::vector<JsonMember>;

TEST(JsonMembers, KeepsStringsRawAndTheRestAsJson) {
  EXPECT_EQ(json_members(R"({"s":"a\n\"b","n":1.50,"o":{"k":["x",1]},"e":{},"l":[],"z":null})"),
            (Members{{"s", true, "a\n\"b"},
                     {"n", false, "1.5"},
                     {"o", false, R"({"k": ["x", 1]})"},
                     {"e", false, "{}"},
                     {"l", false, "[]"},
                     {"z", false, "null"}}));
  EXPECT_EQ(json_members(" {} "), Members{});
  EXPECT_EQ(json_members(R"({"a":1,"b":2,"a":"x"})"),
            (Members{{"a", true, "x"}, {"b", false, "2"}}));
}

TEST(JsonMembers, KeepsIntegersOfAnySize) {
  EXPECT_EQ(json_members(R"({"n":123456789012345678901234567890,"m":[-98765432109876543210]})"),
            (Members{{"n", false, "123456789012345678901234567890"},
                     {"m", false, "[-98765432109876543210]"}}));
}

TEST(JsonMembers, RefusesWhatIsNoObject) {
  for (const std::string& text : {std::string("{}\0", 3), std::string(""), std::string("{}]")}) {
    EXPECT_EQ(json_members(text), std::nullopt) << text;
    EXPECT_FALSE(is_json(text)) << text;
  }
  for (const char* text : {"[1]", "\"s\"", "1", "null", "true", "{", R"({"a":1} x)",
                           R"({"a":"\ud800"})", "{\"a\":\"\xff\"}", R"([{"a":1}])"}) {
    EXPECT_EQ(json_members(text), std::nullopt) << text;
  }
}

TEST(JsonMembers, NestingCostsNoStack) {
  constexpr std::size_t kDepth = 1000000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_EQ(json_members("{\"a\":" + deep + "}"), (Members{{"a", false, deep}}));
}

}  // namespace
}  // namespace cupel
