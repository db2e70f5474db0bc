// /v1/chat/completions: the published prompt, reasoning and tool calls apart, forms of answers.
#include <algorithm>

#include "server/served.h"
#include <gmock/gmock.h>

#include "cupel/text/utf8.h"

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kQuestion =
    "Ivy has 5 apples. Ivy buys 3 more apples. How many apples does Ivy have now?";
const std::string kChat =
    "<｜begin▁of▁sentence｜><｜User｜>" + kQuestion + "<｜Assistant｜></think>";

json user(const std::string& text) {
  return json::array({{{"role", "user"}, {"content", text}}});
}

GenerationRequest asked(const std::string& prompt, int tokens) {
  return {.prompt_ids = expecting_engine().tokenizer().encode(prompt), .max_new_tokens = tokens};
}

const json kWeather = {
    {"type", "function"},
    {"function",
     {{"name", "weather"},
      {"parameters",
       {{"type", "object"},
        {"properties",
         {{"city", {{"type", "string"}}}, {"days", {{"type", "integer"}, {"maximum", 9}}}}},
        {"required", {"city", "days"}}}}}}};

ServerOptions chat_options() {
  ServerOptions options = quiet_options();
  options.prose_example = CUPEL_SOURCE_DIR "/data/v4-flash/encoding/test_output_1.txt";
  return options;
}

TEST(Chat, AnswersThePublishedPrompt) {
  const Served server(chat_options());
  const Generation g = expected(asked(kChat, 60));
  const json reply =
      server.post("/v1/chat/completions",
                  {{"messages", user(kQuestion)}, {"temperature", 0}, {"max_tokens", 60}});
  EXPECT_EQ(reply["object"], "chat.completion");
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], to_valid_utf8(g.text));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], asked(kChat, 1).prompt_ids.size());
  EXPECT_EQ(reply["usage"]["completion_tokens"], g.output_ids.size());
  EXPECT_EQ(reply["usage"]["reasoning_tokens"], 0);
}

TEST(Chat, ReasoningComesApart) {
  const Served server(chat_options());
  const std::string prompt =
      "<｜begin▁of▁sentence｜><｜User｜>" + kQuestion + "<｜Assistant｜><think>";
  const Generation g = expected(asked(prompt, 80));
  for (const json& extra :
       {json{{"chat_template_kwargs", {{"thinking", true}}}}, json{{"reasoning_effort", "low"}}}) {
    json body = {{"messages", user(kQuestion)}, {"temperature", 0}, {"max_tokens", 80}};
    body.update(extra);
    const json reply = server.post("/v1/chat/completions", body);
    const json& message = reply["choices"][0]["message"];
    const std::string text = to_valid_utf8(g.text);
    const std::size_t end = text.find("</think>");
    EXPECT_EQ(message.value("reasoning_content", ""), text.substr(0, end));
    const auto marker = expecting_engine().tokenizer().encode("</think>");
    const auto found = std::find(g.output_ids.begin(), g.output_ids.end(), marker.at(0));
    const auto reasoning =
        std::distance(g.output_ids.begin(), found) + (found == g.output_ids.end() ? 0 : 1);
    EXPECT_EQ(reply["usage"]["reasoning_tokens"], reasoning);
    EXPECT_EQ(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], reasoning);
    const json content = message["content"];
    EXPECT_EQ(content.is_null() ? "" : content.get<std::string>(),
              end == std::string::npos ? "" : text.substr(end + 8));
  }
  // No text for it in this checkpoint.
  const json refused = server.post("/v1/chat/completions",
                                   {{"messages", user("a")}, {"reasoning_effort", "max"}}, 400);
  EXPECT_THAT(refused["error"]["message"].get<std::string>(), HasSubstr("effort"));
}

// Calls that a form brings about, whole and streamed, are the same.
TEST(Chat, RequiredToolCalls) {
  const Served server(chat_options());
  for (const json& choice :
       {json("required"), json{{"type", "function"}, {"function", {{"name", "weather"}}}}}) {
    for (const bool thinking : {false, true}) {
      SCOPED_TRACE(choice.dump() + (thinking ? " thinking" : ""));
      const json body = {{"messages", user(kQuestion)},
                         {"tools", {kWeather}},
                         {"tool_choice", choice},
                         {"parallel_tool_calls", false},
                         {"temperature", 1},
                         {"seed", 3},
                         {"max_tokens", 150},
                         {"chat_template_kwargs", {{"thinking", thinking}}}};
      const json reply = server.post("/v1/chat/completions", body);
      const json& answer = reply["choices"][0];
      EXPECT_EQ(answer["finish_reason"], "tool_calls");
      ASSERT_EQ(answer["message"]["tool_calls"].size(), 1U);
      const json& call = answer["message"]["tool_calls"][0];
      EXPECT_EQ(call["type"], "function");
      EXPECT_EQ(call["function"]["name"], "weather");
      const json arguments = json::parse(call["function"]["arguments"].get<std::string>());
      EXPECT_TRUE(arguments["city"].is_string());
      EXPECT_LE(arguments["days"].get<double>(), 9);

      std::string name, text, reasoning;
      json finish;
      for (const json& event : server.stream("/v1/chat/completions", body)) {
        const json& delta = event["choices"][0]["delta"];
        finish = event["choices"][0]["finish_reason"];
        reasoning += delta.value("reasoning_content", "");
        if (!delta.contains("tool_calls")) continue;
        const json& part = delta["tool_calls"][0];
        EXPECT_EQ(part["index"], 0);
        name += part["function"].value("name", "");
        text += part["function"].value("arguments", "");
      }
      EXPECT_EQ(name, "weather");
      EXPECT_EQ(text, call["function"]["arguments"]);
      EXPECT_EQ(reasoning, answer["message"].value("reasoning_content", ""));
      EXPECT_EQ(finish, "tool_calls");
    }
  }
}

TEST(Chat, AnswersHaveTheFormAskedFor) {
  const Served server(chat_options());
  const json schema = {{"type", "object"},
                       {"properties",
                        {{"total", {{"type", "integer"}, {"minimum", 0}, {"maximum", 99}}},
                         {"fruit", {{"enum", {"apple", "pear"}}}}}},
                       {"required", {"total", "fruit"}},
                       {"additionalProperties", false}};
  for (const bool thinking : {false, true}) {
    for (int seed = 0; seed < 4; ++seed) {
      const json reply = server.post(
          "/v1/chat/completions",
          {{"messages", user(kQuestion)},
           {"temperature", 2},
           {"seed", seed},
           {"max_tokens", 100},
           {"chat_template_kwargs", {{"thinking", thinking}}},
           {"response_format",
            {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
      const json value = json::parse(reply["choices"][0]["message"]["content"].get<std::string>());
      EXPECT_LE(value["total"].get<double>(), 99);
      EXPECT_TRUE(value["fruit"] == "apple" || value["fruit"] == "pear");
      EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
    }
  }
  const json any =
      server.post("/v1/chat/completions", {{"messages", user(kQuestion)},
                                           {"temperature", 1},
                                           {"max_tokens", 40},
                                           {"response_format", {{"type", "json_object"}}}});
  EXPECT_TRUE(json::parse(any["choices"][0]["message"]["content"].get<std::string>()).is_object());
  const json native = server.post(
      "/generate", {{"text", "Ivy"},
                    {"sampling_params", {{"json_schema", schema.dump()}, {"max_new_tokens", 60}}}});
  EXPECT_TRUE(json::parse(native["text"].get<std::string>()).contains("total"));
}

TEST(Chat, StreamsTheSameAnswerWithItsLogProbabilities) {
  const Served server(chat_options());
  json body = {{"messages", user(kQuestion)},
               {"temperature", 1.5},
               {"seed", 5},
               {"max_tokens", 50},
               {"logprobs", true},
               {"top_logprobs", 2},
               {"n", 2},
               {"stream_options", {{"include_usage", true}}}};
  std::vector<std::string> content(2);
  std::vector<json> logprobs(2, json::array());
  const auto events = server.stream("/v1/chat/completions", body);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const json& choice = events[i]["choices"][0];
    const std::size_t index = choice["index"];
    if (content[index].empty() && choice["delta"].contains("role")) {
      EXPECT_EQ(choice["delta"]["role"], "assistant");
    }
    content[index] += choice["delta"].value("content", "");
    if (choice["logprobs"].is_null()) continue;
    for (const json& token : choice["logprobs"]["content"]) logprobs[index].push_back(token);
  }
  const json whole = server.post("/v1/chat/completions", body);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(content[i], whole["choices"][i]["message"]["content"]);
    EXPECT_EQ(logprobs[i], whole["choices"][i]["logprobs"]["content"]);
    EXPECT_EQ(logprobs[i][0]["top_logprobs"].size(), 2U);
  }
  EXPECT_EQ(events.back()["usage"]["total_tokens"], whole["usage"]["total_tokens"]);
}

TEST(Chat, NamesWhatIsWrong) {
  ServerOptions options = chat_options();
  options.limits.messages = 3;
  const Served server(options);
  struct Case {
    json extra;
    const char* says;
  };
  const Case cases[] = {
      {{{"messages", nullptr}}, "messages: expected a list of messages, found none"},
      {{{"messages", json::array()}}, "messages"},
      {{{"messages", {{{"role", "king"}, {"content", "a"}}}}}, "messages[0].role"},
      {{{"messages", {user("a")[0], user("a")[0], user("a")[0], user("a")[0]}}},
       "at most 3 messages, found 4"},
      {{{"tools", {{{"type", "x"}}}}}, "tools[0]"},
      {{{"tool_choice", "required"}}, "tool_choice: expected tools to choose from"},
      {{{"tool_choice", "sometimes"}}, "tool_choice: expected none, auto, required"},
      {{{"tools", {kWeather}}, {"tool_choice", {{"function", {{"name", "y"}}}}}}, "tool_choice"},
      {{{"response_format", {{"type", "xml"}}}}, "response_format.type"},
      {{{"response_format", {{"type", "json_schema"}}}}, "response_format.json_schema"},
      {{{"response_format",
         {{"type", "json_schema"}, {"json_schema", {{"schema", {{"if", true}}}}}}}},
       "if"},
      {{{"response_format", {{"type", "json_object"}}}, {"max_tokens", 1}}, "max_new_tokens"},
      {{{"response_format", {{"type", "json_object"}}}, {"stop", "x"}}, "no stop strings"},
      {{{"reasoning_effort", "medium"}}, "reasoning_effort: expected none, low, high or max"},
      {{{"top_logprobs", 2}}, "top_logprobs: only with logprobs"},
      {{{"functions", {1}}}, "functions: use tools"},
      {{{"max_token", 2}}, "no parameter of this interface"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.extra.dump());
    json body = {{"messages", user("a")}};
    body.update(c.extra);
    const json reply = server.post("/v1/chat/completions", body, 400);
    EXPECT_THAT(reply["error"]["message"].get<std::string>(), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace cupel::test
