// SGLang's /generate: the engine's outputs in its form.
#include "server/served.h"
#include <gmock/gmock.h>

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kPrompt = "Question: Ivy has 5 apples. Ivy buys 3 more.\nAnswer:";

GenerationRequest asked(const std::string& prompt, int tokens) {
  return {.prompt_ids = expecting_engine().tokenizer().encode(prompt), .max_new_tokens = tokens};
}

TEST(Generate, AnswersWhatTheEngineAnswers) {
  const Served server;
  const Generation g = expected(asked(kPrompt, 20));
  const json by_text = server.post(
      "/generate",
      {{"text", kPrompt}, {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 20}}}});
  EXPECT_EQ(by_text["text"], g.text);
  EXPECT_EQ(by_text["output_ids"], json(g.output_ids));
  const json& meta = by_text["meta_info"];
  EXPECT_EQ(meta["prompt_tokens"], asked(kPrompt, 1).prompt_ids.size());
  EXPECT_EQ(meta["completion_tokens"], g.output_ids.size());
  EXPECT_TRUE(meta["cached_tokens"].is_number());
  EXPECT_TRUE(meta["e2e_latency"].is_number());
  EXPECT_TRUE(meta["id"].is_string());
  const json by_ids =
      server.post("/generate", {{"input_ids", asked(kPrompt, 1).prompt_ids},
                                {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 20}}}});
  EXPECT_EQ(by_ids["text"], g.text);
}

TEST(Generate, SaysWhyAnOutputEnded) {
  const Served server;
  const auto ended = [&](json params) {
    params["temperature"] = 0;
    return server.post("/generate", {{"text", kPrompt}, {"sampling_params", std::move(params)}});
  };
  EXPECT_EQ(ended({{"max_new_tokens", 3}})["meta_info"]["finish_reason"],
            (json{{"type", "length"}, {"length", 3}}));
  const std::string text = ended({{"max_new_tokens", 20}})["text"];
  const std::string stop = text.substr(4, 2);
  const json stopped = ended({{"max_new_tokens", 20}, {"stop", stop}});
  EXPECT_EQ(stopped["meta_info"]["finish_reason"], (json{{"type", "stop"}, {"matched", stop}}));
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  const std::int32_t id = ended({{"max_new_tokens", 3}})["output_ids"][1];
  const json by_id = ended({{"max_new_tokens", 20}, {"stop_token_ids", {id}}});
  EXPECT_EQ(by_id["meta_info"]["finish_reason"], (json{{"type", "stop"}, {"matched", id}}));
  // min_new_tokens holds such an end off.
  const json later =
      ended({{"max_new_tokens", 5}, {"stop_token_ids", {id}}, {"min_new_tokens", 5}});
  EXPECT_EQ(later["meta_info"]["completion_tokens"], 5);
}

TEST(Generate, AnswersListsByLists) {
  const Served server;
  const json reply = server.post(
      "/generate", {{"text", {kPrompt, "Ivy", "Ken has 7"}},
                    {"sampling_params",
                     {{{"temperature", 0}, {"max_new_tokens", 5}},
                      {{"temperature", 0}, {"max_new_tokens", 7}},
                      {{"temperature", 2}, {"max_new_tokens", 9}, {"sampling_seed", 6}}}},
                    {"rid", {"a", "b", "c"}}});
  GenerationRequest last = asked("Ken has 7", 9);
  last.sampling = {.temperature = 2, .seed = 6};
  const auto results = expected({asked(kPrompt, 5), asked("Ivy", 7), last});
  ASSERT_EQ(reply.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reply[i]["output_ids"], json(results[i].output_ids)) << i;
    EXPECT_EQ(reply[i]["meta_info"]["id"], std::string(1, static_cast<char>('a' + i)));
  }
  // One prompt in a list is answered by a list, and so is n above 1.
  EXPECT_TRUE(server.post("/generate", {{"text", {"Ivy"}}}).is_array());
  const json two = server.post(
      "/generate", {{"text", "Ivy"},
                    {"sampling_params", {{"n", 2}, {"temperature", 5}, {"max_new_tokens", 6}}}});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NE(two[0]["output_ids"], two[1]["output_ids"]);
}

TEST(Generate, TellsLogProbabilitiesAsTuples) {
  const Served server;
  GenerationRequest request = asked(kPrompt, 4);
  request.top_logprobs = 2;
  request.prompt_logprobs = true;
  const Generation g = expected(request);
  json body = {
      {"text", kPrompt},        {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 4}}},
      {"return_logprob", true}, {"logprob_start_len", 2},
      {"top_logprobs_num", 2},  {"return_text_in_logprobs", true}};
  const json reply = server.post("/generate", body);
  const json& meta = reply["meta_info"];
  const std::size_t prompt = request.prompt_ids.size();
  ASSERT_EQ(meta["input_token_logprobs"].size(), prompt - 2);
  ASSERT_EQ(meta["input_top_logprobs"].size(), prompt - 2);
  for (std::size_t i = 2; i < prompt; ++i) {
    const json& tuple = meta["input_token_logprobs"][i - 2];
    EXPECT_EQ(tuple[1], request.prompt_ids[i]);
    EXPECT_EQ(tuple[2], expecting_engine().tokenizer().token_bytes(request.prompt_ids[i]));
    if (i == 2) {
      EXPECT_TRUE(tuple[0].is_null());
    } else {
      EXPECT_EQ(tuple[0].get<float>(), g.prompt_logprobs[i - 1].logprob);
      EXPECT_EQ(meta["input_top_logprobs"][i - 2][1][0].get<float>(),
                g.prompt_logprobs[i - 1].top[1].second);
    }
  }
  ASSERT_EQ(meta["output_token_logprobs"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(meta["output_token_logprobs"][i][0].get<float>(), g.logprobs[i].logprob);
    EXPECT_EQ(meta["output_token_logprobs"][i][1], g.output_ids[i]);
    EXPECT_EQ(meta["output_top_logprobs"][i][0][1], g.logprobs[i].top[0].first);
  }
  // By default of the output alone.
  body.erase("logprob_start_len");
  EXPECT_EQ(server.post("/generate", body)["meta_info"]["input_token_logprobs"], json::array());
}

// Each event holds the answer from its beginning, and the last one is the whole reply.
TEST(Generate, StreamsTheSameAnswer) {
  const Served server;
  const json body = {
      {"text", {kPrompt, "Ken has 7"}},
      {"sampling_params", {{"temperature", 2.5}, {"max_new_tokens", 30}, {"ignore_eos", true}}},
      {"return_logprob", true},
      {"top_logprobs_num", 2},
      {"rid", {"a", "b"}}};
  const auto without_times = [](json answer) {
    answer["meta_info"].erase("e2e_latency");
    answer["meta_info"].erase("cached_tokens");
    answer.erase("index");
    return answer;
  };
  const json whole = server.post("/generate", body);
  std::vector<json> last(2);
  for (const json& event : server.stream("/generate", body)) {
    json& before = last.at(event["index"].get<std::size_t>());
    if (!before.is_null()) {
      EXPECT_TRUE(event["text"].get<std::string>().starts_with(before["text"].get<std::string>()));
      EXPECT_GE(event["output_ids"].size(), before["output_ids"].size());
      EXPECT_TRUE(before["meta_info"]["finish_reason"].is_null());
    }
    EXPECT_EQ(event["meta_info"]["output_token_logprobs"].size(), event["output_ids"].size());
    before = event;
  }
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(without_times(last[i]), without_times(whole[i]));
}

TEST(Generate, NamesWhatIsWrong) {
  const Served server;
  struct Case {
    json body;
    const char* says;
  };
  const Case cases[] = {
      {json::object(), "text: expected either text or input_ids, found none"},
      {{{"text", "a"}, {"input_ids", {1}}}, "found both"},
      {{{"text", json::array()}}, "text: expected a prompt, found an empty list"},
      {{{"input_ids", {{1}, "b"}}}, "input_ids[1]: expected a list of token ids"},
      {{{"input_ids", {-1}}}, "input_ids: expected token ids, found -1"},
      {{{"text", "a"}, {"sampling_params", 5}}, "sampling_params: expected an object, found 5"},
      {{{"text", {"a", "b"}}, {"sampling_params", {json::object()}}}, "one value, or 2 of them"},
      {{{"text", "a"}, {"sampling_params", {{"max_new_tokens", 0}}}},
       "sampling_params.max_new_tokens: expected an integer of at least 1, found 0"},
      {{{"text", "a"}, {"sampling_params", {{"max_tokens", 1}}}}, "no parameter"},
      {{{"text", "a"}, {"sampling_params", {{"regex", "a+"}}}}, "sampling_params.regex"},
      {{{"text", "a"}, {"image_data", "x"}}, "image_data: prompts are text or token ids"},
      {{{"text", "a"}, {"return_logprob", true}, {"logprob_start_len", 9}}, "logprob_start_len"},
      {{{"text", "a"}, {"lora_path", "x"}}, "lora_path"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body.dump());
    const json reply = server.post("/generate", c.body, 400);
    EXPECT_THAT(reply["error"]["message"].get<std::string>(), HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace cupel::test
