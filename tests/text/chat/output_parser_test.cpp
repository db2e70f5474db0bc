#include "cupel/text/chat/output_parser.h"

#include "text/chat/output_samples.h"
#include "text/random_text.h"
#include <gmock/gmock.h>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

using test::block;
using test::invoke;
using test::parameter;
using test::stream;
using Kind = OutputEvent::Kind;
using Calls = std::vector<ToolCall>;

constexpr OutputParser::Options kChat = {};
constexpr OutputParser::Options kThink = {.mode = ThinkingMode::kThinking};

// The message, after a check that it does not depend on the split.
ChatMessage parsed(const std::string& output, OutputParser::Options options = kChat) {
  const auto whole = stream(output, options, [&] { return output.size(); });
  const auto bytewise = stream(output, options, [] { return 1; });
  EXPECT_EQ(whole.events, bytewise.events) << output;
  EXPECT_EQ(whole.message, bytewise.message) << output;
  EXPECT_EQ(whole.message, parse_output(output, options)) << output;
  return whole.message;
}

TEST(OutputParser, ReasoningEndsAtItsTag) {
  const ChatMessage message = parsed("think < / </thin</think>answer</think>", kThink);
  EXPECT_EQ(message.role, ChatRole::kAssistant);
  EXPECT_EQ(message.reasoning_content, "think < / </thin");
  EXPECT_EQ(message.content, "answer</think>");
  EXPECT_EQ(parsed("cut </thi", kThink).reasoning_content, "cut </thi");
  EXPECT_EQ(parsed("</think>", kThink).reasoning_content, "");
  EXPECT_EQ(parsed("a</think>b").content, "a</think>b");
  const ChatMessage tagged = parsed(block(invoke("f", "")) + "</think>b", kThink);
  EXPECT_EQ(tagged.reasoning_content, block(invoke("f", "")));
  EXPECT_EQ(tagged.tool_calls, Calls{});
}

TEST(OutputParser, EndsAtTheEndOfSentence) {
  EXPECT_EQ(parsed("a<｜end▁of▁sentence｜>b<｜end▁of▁sentence｜>").content, "a");
  EXPECT_EQ(parsed("a<｜end▁of▁sentence").content, "a<｜end▁of▁sentence");
  EXPECT_EQ(parsed("a<｜end▁of▁sentence｜>", kThink).reasoning_content, "a");
}

TEST(OutputParser, ReadsCalls) {
  const ChatMessage message =
      parsed("I look.\n" +
             block(invoke("get", parameter("where", "true", "a \"b\"\n<｜DSML｜x> 气") +
                                     parameter("n", "false", "[1, {\"k\": 2}]")) +
                   invoke("now", "\n")) +
             "<｜end▁of▁sentence｜>");
  EXPECT_EQ(message.content, "I look.\n");
  EXPECT_EQ(message.tool_calls,
            (Calls{{"", "get", R"({"where": "a \"b\"\n<｜DSML｜x> 气", "n": [1, {"k": 2}]})"},
                   {"", "now", "{}"}}));
}

TEST(OutputParser, StreamsCalls) {
  OutputParser parser(kChat);
  using Events = std::vector<OutputEvent>;
  EXPECT_EQ(parser.feed("Hm\n"), (Events{{Kind::kContent, 0, "Hm"}}));
  EXPECT_EQ(parser.feed("\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f"), Events{});
  EXPECT_EQ(parser.feed("n\">\n"), (Events{{Kind::kToolCallBegin, 0, "fn"}}));
  EXPECT_EQ(parser.feed("<｜DSML｜parameter name=\"a\" string=\"true\">x\"y</"),
            (Events{{Kind::kToolArguments, 0, R"({"a": "x\"y)"}}));
  EXPECT_EQ(parser.feed("b>"), (Events{{Kind::kToolArguments, 0, "</b>"}}));
  EXPECT_EQ(parser.feed("</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">[1"),
            (Events{{Kind::kToolArguments, 0, "\""}}));
  EXPECT_EQ(parser.feed("]</｜DSML｜parameter>\n"),
            (Events{{Kind::kToolArguments, 0, R"(, "b": [1])"}}));
  EXPECT_EQ(parser.feed("</｜DSML｜invoke>\n"),
            (Events{{Kind::kToolArguments, 0, "}"}, {Kind::kToolCallEnd, 0, ""}}));
  EXPECT_EQ(parser.feed("</｜DSML｜tool_calls>"), Events{});
  EXPECT_EQ(parser.feed("Done"), (Events{{Kind::kContent, 0, "Done"}}));
  EXPECT_EQ(parser.finish(), Events{});
  EXPECT_EQ(parser.message().tool_calls, (Calls{{"", "fn", R"({"a": "x\"y</b>", "b": [1]})"}}));
}

TEST(OutputParser, WhiteSpaceBetweenTagsIsFree) {
  const std::string compact =
      "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" "
      "string=\"false\">1"
      "</｜DSML｜parameter>  \r\n\t</｜DSML｜invoke></｜DSML｜tool_calls>";
  EXPECT_EQ(parsed(compact).tool_calls, (Calls{{"", "f", R"({"a": 1})"}}));
  EXPECT_EQ(parsed("a\n" + compact).content, "a\n");
}

TEST(OutputParser, AValueThatIsNoJsonIsAString) {
  const std::string values = parameter("a", "false", "Beijing") +
                             parameter("b", "false", "{\"k\":") + parameter("c", "false", "") +
                             parameter("d", "false", std::string("5\0", 2));
  EXPECT_EQ(parsed(block(invoke("f", values))).tool_calls,
            (Calls{{"", "f", R"({"a": "Beijing", "b": "{\"k\":", "c": "", "d": "5\u0000"})"}}));
}

// Each is returned as it was.
TEST(OutputParser, WhatIsNoBlockIsContent) {
  for (const std::string& output : std::vector<std::string>{
           "plain", "", "a\n\n", "\n\n\n", "<｜DSML｜tool_calls", "use <｜DSML｜tool_calls> blocks",
           block(""), block("text"), block("<｜DSML｜invoke>\n"), block(invoke("", "")),
           block("<｜DSML｜invoke name=\"f\n</｜DSML｜invoke>\n"),
           "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f",
           "<｜DSML｜invoke name=\"f\">\n</｜DSML｜invoke>", "</｜DSML｜tool_calls>",
           "<｜DSML｜tool_calls><｜DSML｜tool_calls>"}) {
    const ChatMessage message = parsed(output);
    EXPECT_EQ(message.content, output);
    EXPECT_EQ(message.tool_calls, Calls{});
  }
}

// The call has begun in the stream already; in the message it is content.
TEST(OutputParser, AMalformedCallIsAbandoned) {
  const std::string good = parameter("a", "true", "x");
  for (const std::string& call : std::vector<std::string>{
           invoke("f", good + "text\n"), invoke("f", good + good),
           invoke("f", good + "<｜DSML｜parameter name=\"b\">1</｜DSML｜parameter>\n"),
           invoke("f", good + invoke("g", "")), "<｜DSML｜invoke name=\"f\">\n" + good}) {
    const std::string output = "Hi" + block(call);
    const ChatMessage message = parsed(output);
    EXPECT_EQ(message.content, output);
    EXPECT_EQ(message.tool_calls, Calls{}) << output;

    const auto streamed = stream(output, kChat, [] { return 3; });
    ASSERT_GE(streamed.events.size(), 4u);
    EXPECT_EQ(streamed.events[1], (OutputEvent{Kind::kToolCallBegin, 0, "f"}));
    EXPECT_EQ(streamed.events[2].kind, Kind::kToolArguments);
    EXPECT_FALSE(ChatJson::accept(streamed.events[2].text)) << streamed.events[2].text;
    EXPECT_EQ(streamed.events[3].kind, Kind::kToolCallAbandoned);
  }
}

TEST(OutputParser, GoodCallsBesideABadOneStay) {
  const std::string good = invoke("f", parameter("a", "false", "1"));
  const std::string bad = invoke("g", "text\n");
  const ChatMessage message = parsed(block(good + bad) + "between" + block(good));
  EXPECT_EQ(message.tool_calls, (Calls{{"", "f", R"({"a": 1})"}, {"", "f", R"({"a": 1})"}}));
  EXPECT_EQ(message.content, "\n" + bad + "</｜DSML｜tool_calls>between");
}

TEST(OutputParser, AnOutputThatEndsInsideACallIsContent) {
  const std::string whole = "Hi" + block(invoke("f", parameter("a", "true", "xyz")));
  const std::size_t call_end =
      whole.find("</｜DSML｜invoke>") + std::string("</｜DSML｜invoke>").size();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const ChatMessage message = parsed(whole.substr(0, length));
    if (length < call_end) {
      // Up to unfinished characters.
      EXPECT_TRUE(message.content.starts_with(valid_utf8_prefix(whole.substr(0, length))));
      EXPECT_EQ(message.tool_calls, Calls{});
    } else {
      EXPECT_TRUE(message.content.starts_with("Hi"));
      EXPECT_EQ(message.tool_calls, (Calls{{"", "f", R"({"a": "xyz"})"}}));
    }
  }
}

TEST(OutputParser, CallsCanBeLeftAlone) {
  const std::string output = "Hi" + block(invoke("f", ""));
  EXPECT_EQ(parsed(output, {.tool_calls = false}).content, output);
}

TEST(OutputParser, TextIsValidUtf8) {
  const ChatMessage message = parsed("\xE6\xB0\x94 \xFF\xE6\xB0 " +
                                     block(invoke("f", parameter("a", "true", "\xC3"))) + "\xE6");
  EXPECT_EQ(message.content, "气 \uFFFD\uFFFD \uFFFD");
  EXPECT_EQ(message.tool_calls, (Calls{{"", "f", "{\"a\": \"\uFFFD\"}"}}));
}

// Tags and their fragments in any order: no text is lost, and the split does not matter.
TEST(OutputParser, AnyMixtureOfTagsIsSafe) {
  constexpr std::string_view kParts[] = {"<｜DSML｜tool_calls>",
                                         "</｜DSML｜tool_calls>",
                                         "<｜DSML｜invoke name=\"",
                                         "f\">",
                                         "</｜DSML｜invoke>",
                                         "<｜DSML｜parameter name=\"",
                                         "a\" string=\"true\">",
                                         "b\" string=\"false\">",
                                         "</｜DSML｜parameter>",
                                         "\n",
                                         "\n\n",
                                         "1",
                                         "x",
                                         "｜",
                                         "<",
                                         "</think>",
                                         "\xE6\xB0"};
  test::RandomText random(41);
  std::size_t calls = 0;
  std::size_t abandoned = 0;
  for (int round = 0; round < 4000; ++round) {
    // Half of the rounds begin well, so that the inner states are met too.
    std::string output = round % 2 == 0 ? "" : "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">";
    output += random.pick(kParts, random.below(14));
    const auto whole = stream(output, kChat, [&] { return output.size() + 1; });
    const auto pieces = stream(output, kChat, [&] { return 1 + random.below(7); });
    ASSERT_EQ(whole.events, pieces.events) << output;
    ASSERT_EQ(whole.message, pieces.message) << output;
    for (const ToolCall& call : whole.message.tool_calls) {
      ASSERT_TRUE(ChatJson::accept(call.arguments)) << call.arguments;
    }
    calls += whole.message.tool_calls.size();
    for (const OutputEvent& event : whole.events)
      abandoned += event.kind == Kind::kToolCallAbandoned;
    if (whole.message.tool_calls.empty()) {
      ASSERT_EQ(whole.message.content, to_valid_utf8(output));
    }
  }
  EXPECT_GT(calls, 50u);
  EXPECT_GT(abandoned, 500u);
}

}  // namespace
}  // namespace cupel
