// /v1/completions: the engine's outputs in OpenAI's form.
#include "server/served.h"
#include <gmock/gmock.h>

#include "cupel/text/utf8.h"

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kQuestion =
    "Question: Ivy has 5 apples. Ivy buys 3 more apples. How many apples does Ivy have now?\n"
    "Answer:";

GenerationRequest asked(const std::string& prompt, int tokens) {
  return {.prompt_ids = expecting_engine().tokenizer().encode(prompt), .max_new_tokens = tokens};
}

TEST(Completions, AnswersWhatTheEngineAnswers) {
  const Served server;
  const Generation g = expected(asked(kQuestion, 40));
  const json reply = server.post("/v1/completions", {{"model", "tiny"},
                                                     {"prompt", kQuestion},
                                                     {"max_tokens", 40},
                                                     {"temperature", 0},
                                                     {"return_token_ids", true}});
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["model"], "tiny");
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], g.text);
  EXPECT_EQ(choice["token_ids"], json(g.output_ids));
  EXPECT_EQ(choice["finish_reason"], g.finish == FinishReason::kLength ? "length" : "stop");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], asked(kQuestion, 1).prompt_ids.size());
  EXPECT_EQ(reply["usage"]["completion_tokens"], g.output_ids.size());
}

TEST(Completions, TakesEveryFormOfPrompt) {
  const Served server;
  const std::vector<std::int32_t> ids = asked("Ivy has 5 apples.", 1).prompt_ids;
  const std::string text = expected(asked("Ivy has 5 apples.", 6)).text;
  const json forms[] = {"Ivy has 5 apples.", json::array({"Ivy has 5 apples."}), json(ids),
                        json::array({ids, ids})};
  const std::size_t counts[] = {1, 1, 1, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(forms[i].dump());
    const json reply = server.post("/v1/completions",
                                   {{"prompt", forms[i]}, {"max_tokens", 6}, {"temperature", 0}});
    ASSERT_EQ(reply["choices"].size(), counts[i]);
    for (std::size_t j = 0; j < counts[i]; ++j) {
      EXPECT_EQ(reply["choices"][j]["index"], j);
      EXPECT_EQ(reply["choices"][j]["text"], text);
    }
  }
}

TEST(Completions, PassesEverySamplingParameterOn) {
  const Served server;
  GenerationRequest request = asked(kQuestion, 12);
  request.sampling = {.temperature = 1.5F,
                      .seed = 9,
                      .top_k = 40,
                      .top_p = 0.9F,
                      .min_p = 0.01F,
                      .repetition_penalty = 1.1F,
                      .frequency_penalty = 0.2F,
                      .presence_penalty = 0.3F};
  request.min_new_tokens = 3;
  request.ignore_eos = true;
  request.logit_bias = {{30, 2.5F}, {31, -100.0F}};
  request.stop_ids = {28};
  const json body = {{"prompt", kQuestion},
                     {"max_tokens", 12},
                     {"temperature", 1.5},
                     {"seed", 9},
                     {"top_k", 40},
                     {"top_p", 0.9},
                     {"min_p", 0.01},
                     {"repetition_penalty", 1.1},
                     {"frequency_penalty", 0.2},
                     {"presence_penalty", 0.3},
                     {"min_tokens", 3},
                     {"ignore_eos", true},
                     {"logit_bias", {{"30", 2.5}, {"31", -100}}},
                     {"stop_token_ids", {28}},
                     {"return_token_ids", true}};
  const auto ids_of = [&](const json& asked_for) {
    return server.post("/v1/completions", asked_for)["choices"][0]["token_ids"];
  };
  EXPECT_EQ(ids_of(body), json(expected(request).output_ids));
  // Without a parameter the engine is asked without it.
  struct Left {
    const char* key;
    std::function<void(GenerationRequest&)> undo;
  };
  const Left left[] = {
      {"seed", [](GenerationRequest& r) { r.sampling.seed = 0; }},
      {"temperature", [](GenerationRequest& r) { r.sampling.temperature = 1; }},
      {"top_k", [](GenerationRequest& r) { r.sampling.top_k = 0; }},
      {"logit_bias", [](GenerationRequest& r) { r.logit_bias.clear(); }},
      {"min_tokens", [](GenerationRequest& r) { r.min_new_tokens = 0; }},
      {"stop_token_ids", [](GenerationRequest& r) { r.stop_ids.clear(); }},
      {"max_tokens", [](GenerationRequest& r) { r.max_new_tokens = 16; }},
  };
  for (const Left& one : left) {
    SCOPED_TRACE(one.key);
    json without = body;
    without.erase(one.key);
    GenerationRequest same = request;
    one.undo(same);
    EXPECT_EQ(ids_of(without), json(expected(same).output_ids));
  }
}

TEST(Completions, ChoicesOfAPromptHaveSeedsOfTheirOwn) {
  const Served server;
  GenerationRequest request = asked(kQuestion, 8);
  request.sampling = {.temperature = 20, .seed = 3};
  const json reply = server.post(
      "/v1/completions",
      {{"prompt", kQuestion}, {"max_tokens", 8}, {"temperature", 20}, {"seed", 3}, {"n", 3}});
  ASSERT_EQ(reply["choices"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    request.sampling.seed = 3 + i;
    const Generation g = expected(request);
    EXPECT_EQ(reply["choices"][i]["text"], to_valid_utf8(g.text)) << i;
  }
  EXPECT_NE(reply["choices"][0]["text"], reply["choices"][1]["text"]);
  // The prompt counts once.
  EXPECT_EQ(reply["usage"]["prompt_tokens"], request.prompt_ids.size());
  EXPECT_EQ(reply["usage"]["completion_tokens"], 24);
}

TEST(Completions, EndsAtStopStringsAndSaysWhich) {
  const Served server;
  const std::string whole = expected(asked(kQuestion, 30)).text;
  ASSERT_GT(whole.size(), 12U);
  const std::string stop = whole.substr(8, 3);
  const json reply = server.post(
      "/v1/completions",
      {{"prompt", kQuestion}, {"max_tokens", 30}, {"temperature", 0}, {"stop", {"@@", stop}}});
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["matched_stop"], stop);
}

TEST(Completions, EchoTellsTheLogProbabilitiesOfThePrompt) {
  const Served server;
  GenerationRequest request = asked(kQuestion, 4);
  request.top_logprobs = 3;
  request.prompt_logprobs = true;
  const Generation g = expected(request);
  json body = {{"prompt", kQuestion},
               {"max_tokens", 4},
               {"temperature", 0},
               {"logprobs", 3},
               {"echo", true}};
  const json reply = server.post("/v1/completions", body);
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], kQuestion + g.text);
  const json& logprobs = choice["logprobs"];
  const std::size_t prompt = request.prompt_ids.size();
  ASSERT_EQ(logprobs["token_logprobs"].size(), prompt + 4);
  ASSERT_EQ(logprobs["top_logprobs"].size(), prompt + 4);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  std::string text;
  for (std::size_t i = 0; i < prompt + 4; ++i) {
    // All of this text is ASCII.
    EXPECT_EQ(logprobs["text_offset"][i], text.size());
    text += logprobs["tokens"][i].get<std::string>();
    if (i == 0) continue;
    const TokenLogprobs& token = i < prompt ? g.prompt_logprobs[i - 1] : g.logprobs[i - prompt];
    EXPECT_EQ(logprobs["token_logprobs"][i].get<float>(), token.logprob);
    for (const auto& [id, value] : token.top) {
      const std::string name(expecting_engine().tokenizer().token_bytes(id));
      EXPECT_EQ(logprobs["top_logprobs"][i].at(name).get<float>(), value);
    }
  }
  EXPECT_EQ(text, kQuestion + g.text);

  // The prompt alone.
  body["max_tokens"] = 0;
  const json alone = server.post("/v1/completions", body);
  EXPECT_EQ(alone["choices"][0]["text"], kQuestion);
  EXPECT_EQ(alone["choices"][0]["logprobs"]["token_logprobs"].size(), prompt);
}

// Joined, the pieces of a stream are the whole answer; characters are never cut.
TEST(Completions, StreamsTheSameAnswer) {
  const Served server;
  for (const double temperature : {0.0, 3.0}) {
    const json body = {{"prompt", {kQuestion, "Ivy"}},
                       {"max_tokens", 40},
                       {"n", 2},
                       {"temperature", temperature},
                       {"logprobs", 2},
                       {"seed", 4},
                       {"ignore_eos", true},
                       {"return_token_ids", true},
                       {"stop", {"apples"}}};
    const json whole = server.post("/v1/completions", body);
    json streamed_body = body;
    streamed_body["stream_options"] = {{"include_usage", true}};
    const std::vector<json> events = server.stream("/v1/completions", streamed_body);
    struct Joined {
      std::string text;
      json ids = json::array(), logprobs = json::array(), finish;
    };
    std::vector<Joined> joined(4);
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
      EXPECT_TRUE(events[i]["usage"].is_null());
      ASSERT_EQ(events[i]["choices"].size(), 1U);
      const json& choice = events[i]["choices"][0];
      Joined& j = joined.at(choice["index"].get<std::size_t>());
      EXPECT_TRUE(j.finish.is_null()) << "after the end";
      j.text += choice["text"].get<std::string>();
      j.finish = choice["finish_reason"];
      if (choice.contains("token_ids")) {
        for (const json& id : choice["token_ids"]) j.ids.push_back(id);
      }
      if (!choice["logprobs"].is_null()) {
        for (const json& value : choice["logprobs"]["token_logprobs"]) j.logprobs.push_back(value);
      }
    }
    for (std::size_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(joined[i].text, whole["choices"][i]["text"]);
      EXPECT_EQ(joined[i].ids, whole["choices"][i]["token_ids"]);
      EXPECT_EQ(joined[i].finish, whole["choices"][i]["finish_reason"]);
      EXPECT_EQ(joined[i].logprobs, whole["choices"][i]["logprobs"]["token_logprobs"]);
    }
    EXPECT_EQ(events.back()["choices"], json::array());
    EXPECT_EQ(events.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
    EXPECT_EQ(events.back()["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"]);
  }
}

TEST(Completions, PutsBosBeforeTextsWhereAskedTo) {
  const std::string bos = "<｜begin▁of▁sentence｜>";
  GenerationRequest with = asked(bos + "Ivy has", 6), without = asked("Ivy has", 6);
  const auto ask = [&](bool add, const json& prompt) {
    ServerOptions options = quiet_options();
    options.add_bos = add;
    const Served server(options);
    const json reply = server.post(
        "/v1/completions",
        {{"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}, {"return_token_ids", true}});
    return std::pair(reply["usage"]["prompt_tokens"].get<std::size_t>(),
                     reply["choices"][0]["token_ids"]);
  };
  const std::pair added(with.prompt_ids.size(), json(expected(with).output_ids));
  const std::pair plain(without.prompt_ids.size(), json(expected(without).output_ids));
  EXPECT_EQ(ask(false, "Ivy has"), plain);
  EXPECT_EQ(ask(true, "Ivy has"), added);
  EXPECT_EQ(ask(true, bos + "Ivy has"), added);  // not twice
  EXPECT_EQ(ask(true, json(without.prompt_ids)), plain);
}

// Each is refused with a message that names the parameter.
TEST(Completions, NamesWhatIsWrong) {
  const Served server;
  struct Case {
    json body;
    const char* says;
    int status = 400;
  };
  const Case cases[] = {
      {{{"max_tokens", 4}}, "prompt: expected a text or token ids, found none"},
      {{{"prompt", ""}}, "at least one token"},
      {{{"prompt", json::array()}}, "prompt: expected a prompt, found an empty list"},
      {{{"prompt", {1, "a"}}}, "prompt: expected token ids, found \"a\""},
      {{{"prompt", {1, 99999}}}, "prompt token 1: expected an id in [0, 768), found 99999"},
      {{{"prompt", "a"}, {"max_tokens", 0}}, "max_tokens: expected at least 1 without echo"},
      {{{"prompt", "a"}, {"max_tokens", -1}}, "max_tokens: expected an integer of at least 0"},
      {{{"prompt", "a"}, {"max_tokens", 1.5}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", 18446744073709551615U}}, "max_tokens"},
      {{{"prompt", "a"}, {"max_tokens", 2000000}}, "within the context"},
      {{{"prompt", "a"}, {"temperature", -1}}, "temperature of at least 0, found -1"},
      {{{"prompt", "a"}, {"temperature", "hot"}}, "temperature: expected a number, found \"hot\""},
      {{{"prompt", "a"}, {"top_p", 0}}, "top_p above 0"},
      {{{"prompt", "a"}, {"n", 0}}, "n: expected an integer of at least 1, found 0"},
      {{{"prompt", "a"}, {"n", 100000}}, "n: expected at most 4096 sequences"},
      {{{"prompt", "a"}, {"best_of", 2}}, "best_of: only 1"},
      {{{"prompt", "a"}, {"suffix", "b"}}, "suffix: there is no infilling"},
      {{{"prompt", "a"}, {"logprobs", 1000}}, "logprobs: expected an integer from 0 to 128"},
      {{{"prompt", "a"}, {"stop", {""}}}, "stop strings of at least one byte"},
      {{{"prompt", "a"}, {"stop", 5}}, "stop: expected a string or a list of strings, found 5"},
      {{{"prompt", "a"}, {"logit_bias", {{"x", 1}}}}, "logit_bias: expected token ids as keys"},
      {{{"prompt", "a"}, {"logit_bias", {{"5000", 1}}}}, "logit_bias: expected an id in [0, 768)"},
      {{{"prompt", "a"}, {"stream", "yes"}}, "stream: expected true or false"},
      {{{"prompt", "a"}, {"stream", true}, {"echo", true}, {"logprobs", 1}}, "logprobs"},
      {{{"prompt", "a"}, {"temprature", 0}}, "\"temprature\": no parameter of this interface"},
      {{{"prompt", "a"}, {"response_format", {{"type", "json_object"}}}}, "response_format"},
      {{{"prompt", "a"}, {"model", "gpt"}}, "model: expected \"tiny\", found \"gpt\"", 404},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body.dump());
    const json reply = server.post("/v1/completions", c.body, c.status);
    ASSERT_TRUE(reply.contains("error"));
    EXPECT_THAT(reply["error"]["message"].get<std::string>(), HasSubstr(c.says));
    EXPECT_EQ(reply["error"]["code"], c.status);
    EXPECT_TRUE(reply["error"]["type"].is_string());
    EXPECT_TRUE(reply["error"].contains("param"));
  }
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "a"}, {"n", 0}}, 400)["error"]["param"],
            "n");
  // What changes no answer is taken.
  server.post("/v1/completions", {{"prompt", "a"},
                                  {"max_tokens", 1},
                                  {"model", "default"},
                                  {"user", "u"},
                                  {"best_of", 1},
                                  {"suffix", nullptr},
                                  {"logprobs", nullptr}});
  ServerOptions options = quiet_options();
  options.allow_unknown = true;
  const Served lenient(options);
  lenient.post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}, {"temprature", 0}});
}

}  // namespace
}  // namespace cupel::test
