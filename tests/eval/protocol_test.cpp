#include "cupel/eval/protocol.h"

#include "support/expect_error.h"
#include "support/fake_server.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/eval/http_connection.h"

namespace cupel {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const PartSource kSource{.url = "http://host/x", .api_key = "sesame"};

CompletionRequest request() {
  return {.prompt = "2+2=", .max_new_tokens = 7, .temperature = 0, .seed = 5, .stop = {"Q", "\n"}};
}

json body(Api api, const CompletionRequest& asked, const AskOptions& options) {
  return json::parse(protocol(api).body(asked, options));
}

Answer read(Api api, const std::vector<std::string>& parts, bool streamed = false) {
  Answer answer;
  for (const std::string& part : parts) protocol(api).read(part, streamed, kSource, answer);
  return answer;
}

std::string whole_reply(Api api, const std::string& text, const std::string& reason) {
  switch (api) {
    case Api::kCompletions:
      return test::completions_reply(text, reason);
    case Api::kChat:
      return test::chat_reply(text, reason);
    case Api::kGenerate:
      break;
  }
  return test::generate_reply(text, reason);
}

TEST(Protocol, CompletionsRequest) {
  const auto& p = protocol(Api::kCompletions);
  EXPECT_EQ(p.path(), "/v1/completions");
  EXPECT_EQ(body(Api::kCompletions, request(), {.served_model = "m"}),
            json::parse(R"({"model":"m","prompt":"2+2=","max_tokens":7,"temperature":0.0,)"
                        R"("stop":["Q","\n"],"stream":false})"));
  CompletionRequest sampled = request();
  sampled.temperature = 0.5;
  sampled.stop.clear();
  EXPECT_EQ(
      body(Api::kCompletions, sampled, {.served_model = "m", .stream = true, .logprobs = true}),
      json::parse(R"({"model":"m","prompt":"2+2=","max_tokens":7,"temperature":0.5,)"
                  R"("seed":5,"stream":true,"stream_options":{"include_usage":true},)"
                  R"("logprobs":2})"));
}

TEST(Protocol, ChatRequestIsOneUserMessage) {
  EXPECT_EQ(protocol(Api::kChat).path(), "/v1/chat/completions");
  EXPECT_EQ(body(Api::kChat, request(), {.served_model = "m", .logprobs = true}),
            json::parse(R"({"model":"m","messages":[{"role":"user","content":"2+2="}],)"
                        R"("max_tokens":7,"temperature":0.0,"stop":["Q","\n"],"stream":false,)"
                        R"("logprobs":true,"top_logprobs":2})"));
}

TEST(Protocol, GenerateRequest) {
  EXPECT_EQ(protocol(Api::kGenerate).path(), "/generate");
  EXPECT_EQ(body(Api::kGenerate, request(), {.served_model = "m"}),
            json::parse(R"({"text":"2+2=","stream":false,"sampling_params":{"temperature":0.0,)"
                        R"("max_new_tokens":7,"stop":["Q","\n"]}})"));
  CompletionRequest sampled = request();
  sampled.temperature = 1;
  const json asked = body(Api::kGenerate, sampled, {.stream = true, .logprobs = true});
  EXPECT_EQ(asked["sampling_params"]["sampling_seed"], 5);
  EXPECT_EQ(asked["return_logprob"], true);
  EXPECT_EQ(asked["top_logprobs_num"], 2);
  EXPECT_EQ(asked["stream"], true);
}

TEST(Protocol, APromptOfInvalidUtf8IsSent) {
  CompletionRequest broken = request();
  broken.prompt = "a\xff";
  for (const Api api : {Api::kCompletions, Api::kChat, Api::kGenerate}) {
    EXPECT_THAT(protocol(api).body(broken, {}), HasSubstr("a\xef\xbf\xbd"));
  }
}

TEST(Protocol, WholeReplies) {
  for (const Api api : {Api::kCompletions, Api::kChat, Api::kGenerate}) {
    SCOPED_TRACE(api_name(api));
    const Answer answer = read(api, {whole_reply(api, " 4.\n", "length")});
    EXPECT_EQ(answer.text, " 4.\n");
    EXPECT_EQ(answer.stop_reason, StopReason::kLength);
    ASSERT_TRUE(answer.usage.has_value());
    EXPECT_EQ(answer.usage->prompt, 11);
    EXPECT_EQ(answer.usage->completion, 3);
    EXPECT_FALSE(answer.margin.value().has_value());
    EXPECT_TRUE(answer.output_ids.empty());
    EXPECT_EQ(read(api, {whole_reply(api, "", "stop")}).text, "");
  }
}

TEST(Protocol, WhatEndedAnAnswer) {
  const auto reason = [](const std::string& members) {
    return *read(Api::kCompletions, {R"({"choices":[{"text":"",)" + members +
                                     R"(}],"usage":{"prompt_tokens":1,"completion_tokens":1}})"})
                .stop_reason;
  };
  EXPECT_EQ(reason(R"("finish_reason":"stop")"), StopReason::kStopString);  // nothing more is told
  EXPECT_EQ(reason(R"("finish_reason":"stop","stop_reason":null)"), StopReason::kEos);
  EXPECT_EQ(reason(R"("finish_reason":"stop","stop_reason":"Q")"), StopReason::kStopString);
  EXPECT_EQ(reason(R"("finish_reason":"stop","matched_stop":1)"), StopReason::kEos);
  EXPECT_EQ(reason(R"("finish_reason":"stop","matched_stop":"Q")"), StopReason::kStopString);
  const auto generated = [](const std::string& finish) {
    return *read(Api::kGenerate, {R"({"text":"","meta_info":{"prompt_tokens":1,)"
                                  R"("completion_tokens":1,"finish_reason":)" +
                                  finish + "}}"})
                .stop_reason;
  };
  EXPECT_EQ(generated(R"({"type":"stop","matched":1})"), StopReason::kEos);
  EXPECT_EQ(generated(R"({"type":"stop","matched":"Q"})"), StopReason::kStopString);
  EXPECT_EQ(generated(R"("length")"), StopReason::kLength);
  EXPECT_THROW(generated(R"({"type":"abort","message":"full"})"), TransientError);
  test::expect_input_error([&] { reason(R"("finish_reason":"tool_calls")"); }, {"tool_calls"});
}

TEST(Protocol, MarginsAreTheSmallestDifferenceOfTheTwoBest) {
  const std::string usage = R"("usage":{"prompt_tokens":1,"completion_tokens":3}})";
  const Answer completions =
      read(Api::kCompletions,
           {R"({"choices":[{"text":"abc","finish_reason":"stop","token_ids":[7,8,9],"logprobs":)"
            R"({"top_logprobs":[{"a":-0.5,"x":-2.0},null,{"z":-3.0,"c":-1.0,"y":-1.25}]}}],)" +
            usage});
  EXPECT_EQ(completions.margin.value(), 0.25);
  EXPECT_EQ(completions.margin.step(), 2);
  EXPECT_THAT(completions.output_ids, ElementsAre(7, 8, 9));
  const Answer chat = read(
      Api::kChat, {R"({"choices":[{"message":{"content":"ab"},"finish_reason":"stop",)"
                   R"("logprobs":{"content":[{"top_logprobs":[{"token":"a","logprob":-0.5},)"
                   R"({"token":"x","logprob":-1.0}]},{"top_logprobs":[{"logprob":-1.0}]}]}}],)" +
                   usage});
  EXPECT_EQ(chat.margin.value(), 0.5);
  EXPECT_EQ(chat.margin.step(), 0);
  const Answer generate = read(
      Api::kGenerate,
      {R"({"text":"ab","meta_info":{"prompt_tokens":1,"completion_tokens":2,"finish_reason":)"
       R"({"type":"length"},"output_token_logprobs":[[-0.5,7,null],[-1.0,8,null]],)"
       R"("output_top_logprobs":[[[-0.5,7,null],[-2.5,3,null]],[[-1.0,8,null],[-2.0,2,null]]]}})"});
  EXPECT_EQ(generate.margin.value(), 1.0);
  EXPECT_EQ(generate.margin.step(), 1);
  EXPECT_THAT(generate.output_ids, ElementsAre(7, 8));
}

TEST(Protocol, LikelihoodsOfAPrompt) {
  const AskOptions options{.served_model = "m"};
  EXPECT_EQ(json::parse(protocol(Api::kCompletions).likelihood_body("a b", options)),
            json::parse(R"({"model":"m","prompt":"a b","max_tokens":1,"temperature":0,)"
                        R"("logprobs":1,"echo":true,"stream":false})"));
  EXPECT_EQ(json::parse(protocol(Api::kGenerate).likelihood_body("a b", options)),
            json::parse(R"({"text":"a b","sampling_params":{"temperature":0,"max_new_tokens":1},)"
                        R"("return_logprob":true,"logprob_start_len":0,"stream":false})"));
  EXPECT_EQ(protocol(Api::kChat).likelihood_body("a b", options), "");

  // Three tokens of the prompt, the first without a value, and a generated one.
  const auto completions = [](const std::string& values) {
    json reply = json::parse(test::completions_reply("x"));
    reply["usage"]["prompt_tokens"] = 3;
    reply["choices"][0]["logprobs"]["token_logprobs"] = json::parse(values);
    return protocol(Api::kCompletions).read_likelihood(reply.dump(), kSource);
  };
  const auto found = completions("[null, -1.5, -0.25, -7]");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->log_probability, -1.75);
  EXPECT_EQ(found->tokens, 2);
  EXPECT_FALSE(completions("[-7]"));  // a server that does not know echo
  EXPECT_FALSE(completions("[null, null, -0.25, -7]"));
  EXPECT_FALSE(protocol(Api::kCompletions).read_likelihood(test::completions_reply("x"), kSource));

  json reply = json::parse(test::generate_reply("x"));
  EXPECT_FALSE(protocol(Api::kGenerate).read_likelihood(reply.dump(), kSource));
  reply["meta_info"]["prompt_tokens"] = 2;
  reply["meta_info"]["input_token_logprobs"] = json::parse("[[null, 5, null], [-2.5, 6, \"t\"]]");
  const auto generated = protocol(Api::kGenerate).read_likelihood(reply.dump(), kSource);
  ASSERT_TRUE(generated);
  EXPECT_EQ(generated->log_probability, -2.5);
  EXPECT_EQ(generated->tokens, 1);
  test::expect_input_error([] { protocol(Api::kCompletions).read_likelihood("<html>", kSource); },
                           {"JSON", "<html>"});
}

TEST(Protocol, StreamedParts) {
  const std::string usage = R"({"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2}})";
  const Answer completions = read(Api::kCompletions,
                                  {R"({"choices":[{"text":"4","finish_reason":null}]})",
                                   R"({"choices":[{"text":"2","finish_reason":"stop"}]})", usage},
                                  true);
  EXPECT_EQ(completions.text, "42");
  EXPECT_EQ(completions.usage->completion, 2);
  const Answer chat =
      read(Api::kChat,
           {R"({"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]})",
            R"({"choices":[{"delta":{"content":"42"},"finish_reason":null}]})",
            R"({"choices":[{"delta":{},"finish_reason":"length"}]})", usage},
           true);
  EXPECT_EQ(chat.text, "42");
  EXPECT_EQ(chat.stop_reason, StopReason::kLength);
  const auto generated = [](const std::string& text, const std::string& reason) {
    return R"({"text":")" + text + R"(","output_ids":[1],"meta_info":{"prompt_tokens":11,)" +
           R"("completion_tokens":1,"finish_reason":)" + reason + "}}";
  };
  // The last event takes a part of the stop string back.
  const Answer generate = read(Api::kGenerate,
                               {generated("4", "null"), generated("42 Qu", "null"),
                                generated("42 ", R"({"type":"stop","matched":"Question"})")},
                               true);
  EXPECT_EQ(generate.text, "42 ");
  EXPECT_THAT(generate.output_ids, ElementsAre(1));
  EXPECT_EQ(generate.stop_reason, StopReason::kStopString);
  test::expect_input_error(
      [&] {
        read(Api::kGenerate, {generated("4", "null"), generated("2", "null")}, true);
      },
      {"does not continue", "--stream"});
}

TEST(Protocol, AChatAnswerThatIsAllThoughtsIsEmpty) {
  EXPECT_EQ(read(Api::kChat, {R"({"choices":[{"message":{"content":null,"reasoning_content":"hm"},)"
                              R"("finish_reason":"length"}],)"
                              R"("usage":{"prompt_tokens":1,"completion_tokens":9}})"})
                .text,
            "");
}

TEST(Protocol, OtherPartsAreRefusedWithWhatWasFound) {
  const auto refused = [](Api api, const std::string& part, const std::vector<std::string>& parts) {
    SCOPED_TRACE(part);
    test::expect_input_error([&] { read(api, {part}); }, parts);
  };
  refused(Api::kCompletions, "<html>hello</html>", {"http://host/x", "JSON", "<html>hello"});
  refused(Api::kCompletions, "", {"an empty body"});
  refused(Api::kCompletions, "[1]", {"no object", "[1]"});
  refused(Api::kCompletions, R"({"a":1})", {"completions interface", "'choices'", R"({"a":1})"});
  refused(Api::kCompletions, R"({"choices":[]})", {"no choice"});
  refused(Api::kCompletions, R"({"choices":[{"finish_reason":"stop"}]})", {"'text'"});
  refused(Api::kCompletions, R"({"choices":[{"text":"a"}]})", {"'finish_reason'"});
  refused(Api::kCompletions, R"({"choices":[{"text":"a","finish_reason":null}]})",
          {"no finish_reason"});
  refused(Api::kCompletions, R"({"choices":[{"text":7,"finish_reason":"stop"}]})", {"string"});
  refused(Api::kCompletions,
          R"({"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":1}})",
          {"'completion_tokens'"});
  refused(Api::kChat, test::completions_reply("4"), {"chat interface", "'message'"});
  refused(Api::kGenerate, test::completions_reply("4"), {"generate interface", "'text'"});
  refused(Api::kGenerate, R"({"text":""})", {"'meta_info'"});
  refused(Api::kGenerate, R"({"error":{"code":400,"message":"too long"}})", {"too long"});
  // Neither the body nor what is made of it shows the key.
  try {
    read(Api::kCompletions, {R"({"detail":"key sesame is wrong"})"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("key [key] is wrong"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("sesame")));
  }
}

TEST(Protocol, ACutReplyAndAServersFailureMayPass) {
  const std::string reply = test::completions_reply("4");
  for (const std::size_t size : {std::size_t{1}, reply.size() / 2, reply.size() - 1}) {
    EXPECT_THROW(read(Api::kCompletions, {reply.substr(0, size)}), TransientError) << size;
  }
  EXPECT_THROW(read(Api::kGenerate, {R"({"error":{"code":503,"message":"full"}})"}, true),
               TransientError);
}

}  // namespace
}  // namespace cupel
