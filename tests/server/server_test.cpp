// The server as a whole: identity, counts, company, leaving clients, the end.
#include <atomic>
#include <random>
#include <thread>

#include "server/served.h"
#include <gmock/gmock.h>

#include "cupel/eval/http_target.h"
#include "cupel/eval/server_identity.h"

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Server, TellsWhatItServes) {
  const Served server;
  EXPECT_EQ(server.get("/v1/models")["data"][0]["id"], "tiny");
  EXPECT_EQ(server.get("/v1/models/tiny")["id"], "tiny");
  EXPECT_EQ(server.get("/get_model_info")["model_path"], bundled_model());
  for (const char* path : {"/server_info", "/get_server_info"}) {
    const json info = server.get(path);
    EXPECT_EQ(info["attention_backend"], "unified");
    EXPECT_EQ(info["fingerprint"], served_engine().fingerprint());
    EXPECT_EQ(info["internal_states"][0]["effective_max_running_requests_per_dp"], 256);
  }
  server.get("/health");
  server.get("/health_generate");
  EXPECT_EQ(server.client().Get("/flush_cache")->status, 200);
  EXPECT_EQ(server.client().Post("/flush_cache")->status, 200);
}

// Our own client takes it for an SGLang server, by each interface it has.
TEST(Server, SatisfiesOurOwnClient) {
  Served server;
  for (const Api api : {Api::kCompletions, Api::kGenerate}) {
    for (const bool stream : {false, true}) {
      HttpTargetOptions options;
      options.url = server->url();
      options.api = api;
      options.stream = stream;
      HttpTarget target(options);
      target.check();
      EXPECT_EQ(target.identity().model, "tiny");
      EXPECT_EQ(target.identity().backend, "unified");
      const CompletionRequest request{.prompt = "Question: Ivy has 5 apples.\nAnswer:",
                                      .max_new_tokens = 24,
                                      .temperature = 0,
                                      .seed = 0,
                                      .stop = {"Question"}};
      Completion found;
      target.complete({&request, 1}, 1, [&](std::size_t, const Completion& c) { found = c; });
      const Generation g = expected(
          GenerationRequest{.prompt_ids = expecting_engine().tokenizer().encode(request.prompt),
                            .max_new_tokens = 24,
                            .stop = {"Question"}});
      EXPECT_EQ(found.error, "");
      EXPECT_EQ(found.text, g.text);
      EXPECT_EQ(found.completion_tokens, static_cast<int>(g.output_ids.size()));
      const std::string text = "Ivy has 5 apples.";
      const auto likelihood = target.likelihoods({&text, 1}).front();
      GenerationRequest scored{.prompt_ids = expecting_engine().tokenizer().encode(text),
                               .max_new_tokens = 1,
                               .prompt_logprobs = true};
      double sum = 0;
      for (const TokenLogprobs& token : expected(scored).prompt_logprobs) sum += token.logprob;
      EXPECT_NEAR(likelihood.log_probability, sum, 1e-4);
    }
  }
}

json random_request(std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  std::string prompt = "Question:";
  for (int i = below(30) + 1; i > 0; --i) prompt += " " + std::to_string(below(1000));
  return {{"text", prompt},
          {"sampling_params",
           {{"temperature", below(2)},
            {"max_new_tokens", below(10) + 1},
            {"sampling_seed", below(9)}}}};
}

// The determinism contract through HTTP: what a request gets does not depend on its company.
TEST(Server, TheSameRequestAloneAndInCompanyGetsTheSameBytes) {
  const Served server;
  const json requests[] = {
      {{"text", "Question: Ivy has 5 apples. Ivy buys 3 more.\nAnswer:"},
       {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 16}}},
       {"return_logprob", true},
       {"top_logprobs_num", 3},
       {"rid", "x"}},
      {{"text", "Question: Ivy has 5 apples. Ivy buys 3 more.\nAnswer:"},
       {"sampling_params",
        {{"temperature", 1.5}, {"max_new_tokens", 16}, {"sampling_seed", 7}, {"ignore_eos", true}}},
       {"return_logprob", true},
       {"logprob_start_len", 0},
       {"rid", "x"}}};
  const auto bytes = [&](const json& request) {
    json reply = server.post("/generate", request);
    for (const char* timing : {"e2e_latency", "cached_tokens", "total_retractions"}) {
      reply["meta_info"].erase(timing);
    }
    return reply.dump();
  };
  const std::string alone[] = {bytes(requests[0]), bytes(requests[1])};
  std::atomic<bool> end = false;
  std::vector<std::thread> company;
  for (unsigned i = 0; i < 64; ++i) {
    company.emplace_back([&, i] {
      std::mt19937 random(i);
      while (!end) server.post("/generate", random_request(random));
    });
  }
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") > 16; }));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bytes(requests[i]), alone[i]);
  end = true;
  for (std::thread& thread : company) thread.join();
}

TEST(Server, CountsWhatItsClientsCount) {
  const Served server;
  std::size_t prompts = 0, outputs = 0, count = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 12; ++i) {
    const json request = random_request(random);
    const json meta = server.post("/generate", request)["meta_info"];
    prompts += meta["prompt_tokens"].get<std::size_t>();
    outputs += meta["completion_tokens"].get<std::size_t>();
    ++count;
  }
  server.post("/generate", {{"text", 5}}, 400);
  EXPECT_EQ(server.metric("sglang:num_requests_total"), count);
  EXPECT_EQ(server.metric("sglang:prompt_tokens_total"), prompts);
  EXPECT_EQ(server.metric("sglang:generation_tokens_total"), outputs);
  EXPECT_EQ(server.metric("sglang:time_to_first_token_seconds_count"), count);
  EXPECT_EQ(server.metric("sglang:inter_token_latency_seconds_count"), outputs - count);
  EXPECT_EQ(server.metric("sglang:num_running_reqs"), 0);
  EXPECT_EQ(server.metric("sglang:num_aborted_requests_total"), 0);
}

std::string endless(bool stream) {
  return json{{"text", "Ivy"},
              {"stream", stream},
              {"sampling_params", {{"max_new_tokens", 100000}, {"ignore_eos", true}}}}
      .dump();
}

TEST(Server, AClientThatLeavesEndsItsRequest) {
  Served server;
  for (const bool stream : {false, true}) {
    for (const bool reset : {false, true}) {
      SCOPED_TRACE(testing::Message() << "stream " << stream << ", reset " << reset);
      const double before = server.metric("sglang:num_aborted_requests_total");
      auto client = std::make_unique<RawConnection>(server->port());
      client->send(raw_post("/generate", endless(stream)));
      EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 1; }));
      if (reset) client->reset();
      client.reset();
      EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 0; }));
      EXPECT_EQ(server.metric("sglang:num_aborted_requests_total"), before + 1);
    }
  }
}

// A client that reads nothing holds its own connection up, nobody else.
TEST(Server, AClientThatReadsNothingIsGivenUp) {
  ServerOptions options = quiet_options();
  options.limits.write_time = std::chrono::milliseconds(300);
  Served server(options);
  RawConnection client(server->port(), 4096);
  client.send(raw_post("/v1/completions", json{{"prompt", "Ivy"},
                                               {"stream", true},
                                               {"logprobs", 128},
                                               {"max_tokens", 20000},
                                               {"ignore_eos", true}}
                                              .dump()));
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 1; }));
  server.post("/generate", {{"text", "Ken"}, {"sampling_params", {{"max_new_tokens", 2}}}});
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_aborted_requests_total") == 1; }));
  EXPECT_TRUE(eventually([&] { return server.metric("cupel:connections") <= 1; }));
}

TEST(Server, AFullQueueIsToldAtOnce) {
  static Engine engine(
      {.model = bundled_model(), .network = {}, .threads = 1, .max_running = 1, .max_waiting = 2});
  Server server(engine, quiet_options());
  RawConnection running(server.port());
  running.send(raw_post("/generate", endless(true)));
  httplib::Client client("127.0.0.1", server.port());
  const json many = {{"text", {"a", "b", "c", "d"}}};
  const auto reply = client.Post("/generate", many.dump(), "application/json");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 503);
  EXPECT_EQ(reply->get_header_value("Retry-After"), "1");
  EXPECT_THAT(reply->body, HasSubstr("the queue is full, 2 requests wait"));
}

TEST(Server, RunningRequestsEndBeforeItStops) {
  Served server;
  std::string reply;
  std::thread client([&] {
    reply = server.post_text(
        "/generate", json{{"text", "Ivy"},
                          {"sampling_params",
                           {{"temperature", 0}, {"max_new_tokens", 300}, {"ignore_eos", true}}}}
                         .dump());
  });
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 1; }));
  server->stop();
  client.join();
  EXPECT_EQ(json::parse(reply)["output_ids"].size(), 300U);
  EXPECT_FALSE(server.client().Get("/health"));  // nobody listens
}

TEST(Server, WhatDoesNotEndInTimeGetsAnError) {
  ServerOptions options = quiet_options();
  options.grace = std::chrono::milliseconds(50);
  Served server(options);
  RawConnection whole(server->port()), streamed(server->port());
  whole.send(raw_post("/generate", endless(false)));
  streamed.send(raw_post("/generate", endless(true)));
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 2; }));
  std::string all;
  std::thread reader([&] { all = streamed.receive(); });
  server->stop();
  reader.join();
  EXPECT_THAT(whole.receive(), HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(all, HasSubstr("the server stops"));
}

}  // namespace
}  // namespace cupel::test
