#include "cupel/text/chat/encoding.h"

#include "text/chat/chat_samples.h"
#include <gmock/gmock.h>

#include "cupel/base/error.h"
#include "cupel/base/sha256.h"
#include "cupel/text/chat/openai_messages.h"

namespace cupel {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr PromptOptions kThink = {.mode = ThinkingMode::kThinking};

std::string encode(const std::vector<ChatMessage>& messages, const PromptOptions& options = {}) {
  return PromptEncoder(ChatRelease::kPreview, test::sample_prose()).encode(messages, options);
}
std::string encode(const std::string& json, const PromptOptions& options = {}) {
  return encode(test::messages(json), options);
}

// The published pair of a number.
void expect_published(int number, ThinkingMode mode) {
  const std::string name = std::to_string(number);
  const std::string input = read_file(test::encoding_file("test_input_" + name + ".json"));
  const ChatJson json = parse_chat_json(input, "test_input_" + name + ".json");
  const bool object = json.is_object();
  auto messages = messages_from_openai(object ? json.at("messages") : json, "messages");
  if (object) attach_tools(messages, tools_from_openai(json.at("tools"), "tools"));
  for (const ChatRelease release : {ChatRelease::kPreview, ChatRelease::k0731}) {
    EXPECT_EQ(PromptEncoder(release, test::sample_prose()).encode(messages, {.mode = mode}),
              read_file(test::encoding_file("test_output_" + name + ".txt")));
  }
}

TEST(PromptEncoding, Published1ThinkingWithTools) {
  expect_published(1, ThinkingMode::kThinking);
}
TEST(PromptEncoding, Published2EarlierReasoningDropped) {
  expect_published(2, ThinkingMode::kThinking);
}
TEST(PromptEncoding, Published3DeveloperAndReminder) {
  expect_published(3, ThinkingMode::kThinking);
}
TEST(PromptEncoding, Published4ChatWithTask) {
  expect_published(4, ThinkingMode::kChat);
}

TEST(PromptEncoding, OneUserMessage) {
  const std::string hi = R"([{"role":"user","content":"Hi"}])";
  EXPECT_EQ(sha256_hex(encode(hi)),
            "43a8b16635804295c55163b61d2f612efd6764fb0f9c1ec0de24a86937fd16b8");
  EXPECT_EQ(sha256_hex(encode(hi, kThink)),
            "a6fa0c69a02bebdd30b714d83d0e81ca7b6fd0d791fa679fe03256c512684224");
  EXPECT_EQ(encode(hi, {.add_bos = false}), "<｜User｜>Hi<｜Assistant｜></think>");
}

TEST(PromptEncoding, EffortStandsForOtherTextsInEachRelease) {
  const auto text = [](ChatRelease release, std::optional<ReasoningEffort> effort,
                       ThinkingMode mode = ThinkingMode::kThinking) {
    const std::string prompt = PromptEncoder(release, test::sample_prose())
                                   .encode(test::messages(R"([{"role":"system","content":"S"}])"),
                                           {.mode = mode, .effort = effort, .add_bos = false});
    return prompt.substr(0, prompt.size() - 1);  // before "S"
  };
  using enum ReasoningEffort;
  EXPECT_EQ(text(ChatRelease::kPreview, std::nullopt), "");
  EXPECT_EQ(text(ChatRelease::kPreview, kNone), "");
  EXPECT_EQ(text(ChatRelease::kPreview, kHigh), "");
  EXPECT_EQ(text(ChatRelease::kPreview, kMax), "Text A.\n\n");
  EXPECT_EQ(text(ChatRelease::k0731, std::nullopt), "");
  EXPECT_EQ(text(ChatRelease::k0731, kLow), "");
  EXPECT_EQ(text(ChatRelease::k0731, kHigh), "Text A.\n\n");
  EXPECT_EQ(text(ChatRelease::k0731, kMax), "Text B.\n\n");
  EXPECT_EQ(text(ChatRelease::k0731, kMax, ThinkingMode::kChat), "");
  EXPECT_THAT([&] { text(ChatRelease::kPreview, kLow); },
              ThrowsMessage<InputError>(
                  HasSubstr("expected none, high or max (release preview), found low")));
  EXPECT_THAT(
      [&] { text(ChatRelease::k0731, kNone); },
      ThrowsMessage<InputError>(HasSubstr("expected low, high or max (release 0731), found none")));
}

TEST(PromptEncoding, MissingTextsAreNamed) {
  const auto hi = test::messages(R"([{"role":"user","content":"Hi"}])");
  const PromptEncoder bare(ChatRelease::k0731, {});
  EXPECT_THAT(
      [&] { bare.encode(hi, {.mode = ThinkingMode::kThinking, .effort = ReasoningEffort::kHigh}); },
      ThrowsMessage<InputError>(
          HasSubstr("reasoning effort high: expected its text in the checkpoint's encoding")));
  EXPECT_NO_THROW(bare.encode(hi, {.effort = ReasoningEffort::kHigh}));  // chat mode
  auto with_tools = hi;
  attach_tools(with_tools, {{.name = "f", .function = {{"name", "f"}}}});
  EXPECT_THAT([&] { bare.encode(with_tools, {}); }, ThrowsMessage<InputError>(HasSubstr("tools")));
  EXPECT_THAT([&] { bare.encode({}, {}); }, ThrowsMessage<InputError>(HasSubstr("messages")));
}

TEST(PromptEncoding, ResponseFormatFollowsTheTools) {
  const std::string json =
      R"([{"role":"system","content":"S","response_format":{"type":"object","n":1.0},)"
      R"("tools":[{"function":{"name":"f"}}]},{"role":"user","content":"Hi"}])";
  const std::string prompt = encode(json);
  EXPECT_THAT(prompt, HasSubstr("\n\n{\"name\": \"f\"}\n\n"));
  EXPECT_THAT(prompt,
              HasSubstr("tool calls.\n\n\n## Format\n\nFollow {\"type\": \"object\", \"n\": 1.0}"
                        "<｜User｜>Hi"));

  // Without the prose the schema adds nothing.
  PromptProse prose = test::sample_prose();
  prose.response_format.reset();
  const PromptEncoder without(ChatRelease::kPreview, prose);
  EXPECT_FALSE(without.describes_response_format());
  EXPECT_THAT(without.encode(test::messages(json), {}), HasSubstr("tool calls.\n<｜User｜>Hi"));
}

TEST(PromptEncoding, UserAndToolMessagesMerge) {
  EXPECT_EQ(encode(R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
                       {"role":"tool","content":"c"},{"role":"user","content":"d"}])",
                   {.add_bos = false}),
            "<｜User｜>a\n\nb\n\n<tool_result>c</tool_result>\n\nd<｜Assistant｜></think>");
  // A message with a task takes no more texts, but tool results.
  EXPECT_EQ(encode(R"([{"role":"user","content":"a","task":"query"},{"role":"tool","content":"b"},
                       {"role":"user","content":"c"}])",
                   {.add_bos = false}),
            "<｜User｜>a\n\n<tool_result>b</tool_result><｜User｜>c<｜Assistant｜></think>");
}

TEST(PromptEncoding, ToolResultsComeInTheOrderOfTheCalls) {
  const std::string calls =
      R"({"role":"assistant","tool_calls":[
         {"id":"x","function":{"name":"f","arguments":"{}"}},
         {"id":"y","function":{"name":"g","arguments":"{}"}}]},)";
  const auto results = [&](const std::string& parts) {
    const std::string prompt = encode("[" + calls + parts + "]", {.add_bos = false});
    const std::size_t start = prompt.find("<｜User｜>") + std::string("<｜User｜>").size();
    return prompt.substr(start, prompt.find("<｜Assistant｜>") - start);
  };
  const std::string x = R"({"role":"tool","tool_call_id":"x","content":"X"})";
  const std::string y = R"({"role":"tool","tool_call_id":"y","content":"Y"})";
  const std::string unknown = R"({"role":"tool","content":"U"})";
  const std::string user = R"({"role":"user","content":"u"})";
  EXPECT_EQ(results(y + "," + x), "<tool_result>X</tool_result>\n\n<tool_result>Y</tool_result>");
  EXPECT_EQ(results(y + "," + user + "," + x),
            "<tool_result>X</tool_result>\n\nu\n\n<tool_result>Y</tool_result>");
  EXPECT_EQ(results(y + "," + unknown + "," + x),
            "<tool_result>U</tool_result>\n\n<tool_result>X</tool_result>\n\n"
            "<tool_result>Y</tool_result>");
}

TEST(PromptEncoding, ToolCallsInDsml) {
  const auto call = [](const std::string& arguments) {
    ChatMessage message;
    message.role = ChatRole::kAssistant;
    message.tool_calls = {{.id = "", .name = "f", .arguments = arguments}};
    const std::string text = render_assistant(message, ThinkingMode::kChat);
    const std::string start = "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n";
    const std::string end = "\n</｜DSML｜invoke>\n</｜DSML｜tool_calls><｜end▁of▁sentence｜>";
    EXPECT_TRUE(text.starts_with(start) && text.ends_with(end)) << text;
    return text.substr(start.size(), text.size() - start.size() - end.size());
  };
  const auto parameter = [](const std::string& key, const char* is_string,
                            const std::string& value) {
    return "<｜DSML｜parameter name=\"" + key + "\" string=\"" + is_string + "\">" + value +
           "</｜DSML｜parameter>";
  };
  EXPECT_EQ(call("{}"), "");
  EXPECT_EQ(call(R"({"b":"x <&\n","a":[1,{"k":"气"}],"c":null})"),
            parameter("b", "true", "x <&\n") + "\n" +
                parameter("a", "false", R"([1, {"k": "气"}])") + "\n" +
                parameter("c", "false", "null"));
  EXPECT_EQ(call("not JSON"), parameter("arguments", "true", "not JSON"));
  EXPECT_EQ(call("[1]"), parameter("arguments", "true", "[1]"));
}

TEST(PromptEncoding, EarlierReasoningIsDroppedUnlessThereAreToolsOrItIsWanted) {
  const auto conversation = [](const std::string& tools) {
    return R"([{"role":"system","content":"S")" + tools +
           R"(},{"role":"developer","content":"d"},{"role":"user","content":"a"},
              {"role":"assistant","content":"b","reasoning_content":"r"},
              {"role":"user","content":"c"},
              {"role":"assistant","content":"e","reasoning_content":"t","wo_eos":true}])";
  };
  const std::string dropped = encode(conversation(""), kThink);
  EXPECT_EQ(dropped,
            "<｜begin▁of▁sentence｜>S<｜User｜>a<｜Assistant｜></think>b<｜end▁of▁sentence｜>"
            "<｜User｜>c<｜Assistant｜><think>t</think>e");
  const std::string kept =
      "<｜User｜>d<｜User｜>a<｜Assistant｜><think>r</think>b<｜end▁of▁sentence｜>"
      "<｜User｜>c<｜Assistant｜><think>t</think>e";
  EXPECT_EQ(encode(conversation(""), {.mode = ThinkingMode::kThinking, .drop_reasoning = false}),
            "<｜begin▁of▁sentence｜>S" + kept);
  EXPECT_TRUE(
      encode(conversation(R"(,"tools":[{"function":{"name":"f"}}])"), kThink).ends_with(kept));
  // In chat mode there is no reasoning, and developers stay.
  EXPECT_EQ(encode(conversation("")),
            "<｜begin▁of▁sentence｜>S<｜User｜>d<｜User｜>a<｜Assistant｜></think>b"
            "<｜end▁of▁sentence｜><｜User｜>c<｜Assistant｜></think>e");
}

TEST(PromptEncoding, TasksAskForTheirToken) {
  const auto prompt = [](const std::string& task, ThinkingMode mode) {
    return encode(R"([{"role":"user","content":"a","task":")" + task + R"("}])",
                  {.mode = mode, .add_bos = false});
  };
  EXPECT_EQ(prompt("action", ThinkingMode::kChat),
            "<｜User｜>a<｜Assistant｜></think><｜action｜>");
  EXPECT_EQ(prompt("action", ThinkingMode::kThinking),
            "<｜User｜>a<｜Assistant｜><think><｜action｜>");
  EXPECT_EQ(prompt("read_url", ThinkingMode::kThinking), "<｜User｜>a<｜read_url｜>");
  // The answer to a task has no reasoning.
  EXPECT_EQ(encode(R"([{"role":"user","content":"a","task":"title"},
                       {"role":"assistant","content":"b","reasoning_content":"r"}])",
                   {.mode = ThinkingMode::kThinking, .add_bos = false}),
            "<｜User｜>a<｜title｜>b<｜end▁of▁sentence｜>");
}

TEST(PromptEncoding, AConversationWithoutUserKeepsItsReasoning) {
  EXPECT_EQ(encode(R"([{"role":"assistant","content":"b","reasoning_content":"r"}])", kThink),
            "<｜begin▁of▁sentence｜>r</think>b<｜end▁of▁sentence｜>");
  EXPECT_EQ(encode(R"([{"role":"latest_reminder","content":"now"}])"),
            "<｜begin▁of▁sentence｜><｜latest_reminder｜>now");
}

TEST(PromptEncoding, TheReleaseFollowsTheConfiguration) {
  const std::filesystem::path folder = std::filesystem::path(CUPEL_SOURCE_DIR) / "data/v4-flash";
  EXPECT_EQ(chat_release(load_config(folder / "config.0731.json")), ChatRelease::k0731);
  EXPECT_EQ(chat_release(load_config(folder / "config.preview.json")), ChatRelease::kPreview);
  EXPECT_EQ(release_from_name("0731"), ChatRelease::k0731);
  EXPECT_EQ(release_from_name("preview"), ChatRelease::kPreview);
  EXPECT_EQ(release_from_name("x"), std::nullopt);
  EXPECT_EQ(effort_from_name("low"), ReasoningEffort::kLow);
  EXPECT_EQ(effort_from_name("medium"), std::nullopt);
}

}  // namespace
}  // namespace cupel
