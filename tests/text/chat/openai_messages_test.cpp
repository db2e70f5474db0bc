#include "cupel/text/chat/openai_messages.h"

#include "text/chat/chat_samples.h"
#include <gmock/gmock.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(OpenAiMessages, ReadsEveryField) {
  const auto messages = test::messages(
      R"([{"role":"system","content":"S","response_format":{"type":"object"},"name":"ignored",
           "tools":[{"type":"function","function":{"name":"f","parameters":{"b":1,"a":2}}}]},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
           "task":"title"},
          {"role":"assistant","content":null,"reasoning":"r","wo_eos":true,"tool_calls":[
            {"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
            {"function":{"name":"g","arguments":{"y":[1,2]}}}]},
          {"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"c"},
            {"type":"image_url"},{"type":"text","text":"d"}]},
          {"role":"tool"}])");
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, ChatRole::kSystem);
  EXPECT_EQ(messages[0].response_format, (ChatJson{{"type", "object"}}));
  ASSERT_EQ(messages[0].tools.size(), 1u);
  EXPECT_EQ(messages[0].tools[0].name, "f");
  EXPECT_EQ(messages[0].tools[0].function.dump(), R"({"name":"f","parameters":{"b":1,"a":2}})");
  EXPECT_EQ(messages[1].content, "a\n\nb");
  EXPECT_EQ(messages[1].task, ChatTask::kTitle);
  EXPECT_EQ(messages[2].reasoning_content, "r");
  EXPECT_TRUE(messages[2].without_eos);
  EXPECT_EQ(messages[2].tool_calls,
            (std::vector<ToolCall>{{"1", "f", R"({"x":1})"}, {"", "g", R"({"y": [1, 2]})"}}));
  EXPECT_EQ(messages[3].content, "c\n\n[Unsupported image_url]\n\nd");
  EXPECT_EQ(messages[3].tool_call_id, "1");
  EXPECT_EQ(messages[4].content, "");
}

TEST(OpenAiMessages, SaysWhereWhatWasExpectedAndFound) {
  const auto expect_error = [](const std::string& json, const std::string& message) {
    EXPECT_THAT([&] { test::messages(json); }, ThrowsMessage<InputError>(message)) << json;
  };
  const std::string roles = "system, developer, user, assistant, tool or latest_reminder";
  expect_error("{}", "messages: expected an array, found an object");
  expect_error("[]", "messages: expected at least one message, found none");
  expect_error("[5]", "messages[0]: expected an object, found 5");
  expect_error(R"([{"content":"a"}])", "messages[0].role: expected " + roles + ", found none");
  expect_error(R"([{"role":"robot","content":"a"}])",
               "messages[0].role: expected " + roles + ", found \"robot\"");
  expect_error(R"([{"role":"user"}])",
               "messages[0].content: expected a string or an array of parts, found none");
  expect_error(R"([{"role":"assistant","content":null}])",
               "messages[0].content: expected a string or an array of parts, found none");
  expect_error(
      R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url"}]}])",
      "messages[1].content[0].type: expected \"text\", found \"image_url\"");
  expect_error(R"([{"role":"user","content":[{"type":"text","text":1}]}])",
               "messages[0].content[0].text: expected a string, found 1");
  expect_error(R"([{"role":"developer","content":""}])",
               "messages[0].content: expected content that is not empty, found \"\"");
  expect_error(R"([{"role":"assistant","tool_calls":[{"function":{"name":5,"arguments":""}}]}])",
               "messages[0].tool_calls[0].function.name: expected a string, found 5");
  expect_error(R"([{"role":"assistant","tool_calls":[{"type":"web","function":{}}]}])",
               "messages[0].tool_calls[0].type: expected \"function\", found \"web\"");
  expect_error(R"([{"role":"user","content":"a","task":"sing"}])",
               "messages[0].task: expected action, query, authority, domain, title or read_url, "
               "found \"sing\"");
  expect_error(R"([{"role":"user","content":"a","tools":[]}])",
               "messages[0].tools: expected it in a system or developer message, "
               "found user message");
  expect_error(R"([{"role":"assistant","content":"a","wo_eos":1}])",
               "messages[0].wo_eos: expected true or false, found 1");
  expect_error(R"([{"role":")" + std::string(59, 'x') + "\xC3\xA9" + R"(","content":"a"}])",
               "messages[0].role: expected " + roles + ", found \"" + std::string(59, 'x') + "...");
}

TEST(OpenAiMessages, ToolsNeedNamesOfTheirOwn) {
  const auto expect_error = [](const std::string& json, const std::string& message) {
    EXPECT_THAT([&] { tools_from_openai(parse_chat_json(json, "test"), "tools"); },
                ThrowsMessage<InputError>(message))
        << json;
  };
  expect_error(R"([{"function":{"name":""}}])",
               "tools[0].function.name: expected a name that is not empty, found \"\"");
  expect_error(R"([{"function":{"name":"f"}},{"function":{"name":"f"}}])",
               "tools[1].function.name: expected a name that no other tool has, found \"f\"");
  expect_error(R"([{"type":"web_search"}])",
               "tools[0].type: expected \"function\", found \"web_search\"");
  expect_error(R"([{"type":"function"}])", "tools[0].function: expected an object, found none");
}

TEST(OpenAiMessages, AnswersInItsForm) {
  ChatMessage message;
  message.role = ChatRole::kAssistant;
  EXPECT_EQ(message_to_openai(message).dump(), R"({"role":"assistant","content":""})");
  message.reasoning_content = "r";
  message.tool_calls = {{"1", "f", "{}"}};
  EXPECT_EQ(message_to_openai(message).dump(),
            R"({"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[)"
            R"({"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]})");
  message.content = "c";
  const auto again = messages_from_openai(ChatJson::array({message_to_openai(message)}), "m");
  EXPECT_EQ(again, std::vector<ChatMessage>{message});
}

TEST(OpenAiMessages, JsonIsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_chat_json(nested(128), "body"));
  EXPECT_THAT([&] { parse_chat_json(nested(129), "body"); },
              ThrowsMessage<InputError>("body: expected nesting of at most 128, found deeper"));
  EXPECT_THAT([&] { parse_chat_json(std::string(1000000, '['), "body"); },
              ThrowsMessage<InputError>(HasSubstr("nesting")));
  EXPECT_THAT([] { parse_chat_json("{\"a\":x}", "body"); },
              ThrowsMessage<InputError>("body byte 6: expected JSON in UTF-8, found other text"));
  EXPECT_THAT([] { parse_chat_json("\"\xff\"", "body"); },
              ThrowsMessage<InputError>(HasSubstr("body byte 2")));
  EXPECT_THAT([] { parse_chat_json(std::string_view("{}\0", 3), "body"); },
              ThrowsMessage<InputError>("body byte 3: expected JSON in UTF-8, found a NUL"));
  EXPECT_THAT([] { parse_chat_json("1e999", "body"); },
              ThrowsMessage<InputError>(HasSubstr("numbers of double precision")));
}

}  // namespace
}  // namespace cupel
