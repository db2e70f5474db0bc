// What is rendered is parsed back, however the stream is cut.
#include "text/chat/output_samples.h"
#include "text/random_text.h"
#include <gmock/gmock.h>

#include "cupel/text/chat/encoding.h"
#include "cupel/text/chat/python_json.h"

namespace cupel {
namespace {

// Texts without special tokens, but with what looks like the start of one.
constexpr std::string_view kTexts[] = {"a",  " ",   "\n",      "\n\n",   "<",   "</",
                                       "\"", "\">", "</think", "｜",     "▁",   "{",
                                       "}",  "\\",  "气",      "é",      "🙂",  "<｜User",
                                       "\t", "0",   "\r",      "\u0001", "<b>", "</tool_result>"};

class Random : public test::RandomText {
 public:
  using RandomText::RandomText;

  std::string text(std::size_t most) { return pick(kTexts, below(most + 1)); }

  ChatJson value(int depth) {
    switch (below(depth > 0 ? 7 : 5)) {
      case 0:
        return text(6);
      case 1:
        return static_cast<std::int64_t>(below(2000)) - 1000;
      case 2:
        return static_cast<double>(below(1000)) / 8 * (below(2) == 0 ? 1e-9 : 1e9);
      case 3:
        return below(2) == 0;
      case 4:
        return nullptr;
      case 5: {
        ChatJson array = ChatJson::array();
        for (std::size_t i = below(4); i > 0; --i) array.push_back(value(depth - 1));
        return array;
      }
      default:
        return object(depth - 1);
    }
  }

  ChatJson object(int depth) {
    ChatJson object = ChatJson::object();
    for (std::size_t i = below(4); i > 0; --i) object[text(3)] = value(depth);
    return object;
  }

  ChatMessage message(ThinkingMode mode) {
    ChatMessage message;
    message.role = ChatRole::kAssistant;
    message.content = text(12);
    if (mode == ThinkingMode::kThinking) message.reasoning_content = text(12);
    for (std::size_t i = below(2) * below(4); i > 0; --i) {
      ToolCall call{.id = "", .name = "f" + std::to_string(below(10)), .arguments = ""};
      call.arguments = python_json(object(3));
      message.tool_calls.push_back(std::move(call));
    }
    return message;
  }
};

TEST(RoundTrip, ParsedIsWhatWasRendered) {
  Random random(2026);
  std::size_t with_calls = 0;
  for (int round = 0; round < 3000; ++round) {
    const ThinkingMode mode = round % 2 == 0 ? ThinkingMode::kChat : ThinkingMode::kThinking;
    const ChatMessage message = random.message(mode);
    const std::string text = render_assistant(message, mode);
    const auto streamed = test::stream(text, {.mode = mode}, [&] { return 1 + random.below(9); });
    ASSERT_EQ(streamed.message, message) << text;

    // The stream alone says the same.
    ChatMessage heard;
    heard.role = ChatRole::kAssistant;
    std::size_t ended = 0;
    for (const OutputEvent& event : streamed.events) {
      using Kind = OutputEvent::Kind;
      if (event.kind == Kind::kReasoning) heard.reasoning_content += event.text;
      if (event.kind == Kind::kContent) heard.content += event.text;
      if (event.kind == Kind::kToolCallBegin) {
        ASSERT_EQ(event.index, heard.tool_calls.size());
        heard.tool_calls.push_back({.id = "", .name = event.text, .arguments = ""});
      }
      if (event.kind == Kind::kToolArguments) heard.tool_calls[event.index].arguments += event.text;
      ended += event.kind == Kind::kToolCallEnd;
    }
    ASSERT_EQ(heard, message) << text;
    ASSERT_EQ(ended, message.tool_calls.size());
    with_calls += message.tool_calls.empty() ? 0 : 1;
  }
  EXPECT_GT(with_calls, 500u);
}

}  // namespace
}  // namespace cupel
