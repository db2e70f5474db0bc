#include "cupel/eval/http_target.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <set>
#include <thread>

#include "support/expect_error.h"
#include "support/fake_server.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using nlohmann::json;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using testing::HasSubstr;

HttpTargetOptions options(const FakeServer& server, Api api = Api::kCompletions) {
  HttpTargetOptions o;
  o.url = server.url();
  o.api = api;
  o.backoff_seconds = 0.001;
  return o;
}

std::vector<CompletionRequest> requests(std::size_t count) {
  std::vector<CompletionRequest> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i].prompt = std::to_string(i);
  return all;
}

// The completion of each request; fails unless each is reported once, in this thread.
std::vector<Completion> complete(Target& target, std::size_t count, int concurrency = 0) {
  std::vector<Completion> all(count);
  std::multiset<std::size_t> reported;
  const auto thread = std::this_thread::get_id();
  target.complete(requests(count), concurrency, [&](std::size_t i, const Completion& completion) {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    reported.insert(i);
    all.at(i) = completion;
  });
  EXPECT_EQ(reported.size(), count);
  EXPECT_EQ(std::set(reported.begin(), reported.end()).size(), count);
  return all;
}

Completion complete_one(const FakeServer& server, const HttpTargetOptions& o) {
  SCOPED_TRACE(server.url());
  HttpTarget target(o);
  return complete(target, 1).front();
}

std::string whole_reply(Api api, const std::string& text) {
  switch (api) {
    case Api::kCompletions:
      return test::completions_reply(text);
    case Api::kChat:
      return test::chat_reply(text);
    case Api::kGenerate:
      break;
  }
  return test::generate_reply(text);
}

// Answers the prompt itself.
FakeReply echo(const FakeRequest& request) {
  return {.body = test::completions_reply(request.json.at("prompt"))};
}

constexpr Api kApis[] = {Api::kCompletions, Api::kChat, Api::kGenerate};

TEST(HttpTarget, EachInterface) {
  for (const Api api : kApis) {
    SCOPED_TRACE(api_name(api));
    FakeServer server(
        [&](const FakeRequest&) { return FakeReply{.body = whole_reply(api, " 4")}; });
    HttpTarget target(options(server, api));
    const std::vector<CompletionRequest> asked = {
        {.prompt = "2+2=", .max_new_tokens = 9, .stop = {"Question"}}};
    Completion c;
    target.complete(asked, 0, [&](std::size_t, const Completion& got) { c = got; });
    EXPECT_EQ(c.text, " 4");
    EXPECT_EQ(c.stop_reason, StopReason::kStopString);
    EXPECT_EQ(c.prompt_tokens, 11);
    EXPECT_EQ(c.completion_tokens, 3);
    EXPECT_EQ(c.cached_prompt_tokens, api == Api::kGenerate ? 8 : 0);
    EXPECT_EQ(c.retries, 0);
    EXPECT_TRUE(c.output_ids.empty());
    EXPECT_TRUE(std::isnan(c.min_margin));
    EXPECT_EQ(c.min_margin_step, -1);
    EXPECT_TRUE(std::isnan(c.first_token_seconds));
    EXPECT_TRUE(std::isnan(c.queue_seconds));
    EXPECT_GT(c.total_seconds, 0);

    const auto posts = server.posts();
    ASSERT_EQ(posts.size(), 1U);
    EXPECT_EQ(posts[0].path, protocol(api).path());
    EXPECT_EQ(posts[0].headers.find("Content-Type")->second, "application/json");
    EXPECT_EQ(posts[0].headers.count("Authorization"), 0U);
    EXPECT_EQ(posts[0].json, json::parse(protocol(api).body(asked[0], {.served_model = "fake"})));
  }
}

TEST(HttpTarget, AnEmptyCompletionIsAnAnswer) {
  for (const Api api : kApis) {
    FakeServer server([&](const FakeRequest&) { return FakeReply{.body = whole_reply(api, "")}; });
    const Completion c = complete_one(server, options(server, api));
    EXPECT_EQ(c.stop_reason, StopReason::kStopString);
    EXPECT_EQ(c.text, "");
    EXPECT_EQ(server.posts().size(), 1U);
  }
}

TEST(HttpTarget, AStreamTellsTheTimeOfTheFirstToken) {
  FakeServer server([](const FakeRequest& request) {
    EXPECT_EQ(request.json["stream"], true);
    return FakeReply{
        .pieces = test::events(
            {json::parse(R"({"choices":[{"text":"","finish_reason":null}]})"),
             json::parse(R"({"choices":[{"text":" 4","finish_reason":null}]})"),
             json::parse(R"({"choices":[{"text":"2","finish_reason":"length"}]})"),
             json::parse(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}})")})};
  });
  HttpTargetOptions o = options(server);
  o.stream = true;
  const Completion c = complete_one(server, o);
  EXPECT_EQ(c.text, " 42");
  EXPECT_EQ(c.stop_reason, StopReason::kLength);
  EXPECT_EQ(c.prompt_tokens, 5);
  EXPECT_EQ(c.completion_tokens, 2);
  EXPECT_GT(c.first_token_seconds, 0);
  EXPECT_LE(c.first_token_seconds, c.total_seconds);
  EXPECT_EQ(c.retries, 0);
}

const std::vector<json> kChatEvents = {
    json::parse(R"({"choices":[{"delta":{"content":" 42"},"finish_reason":null}]})"),
    json::parse(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"),
    json::parse(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}})")};

TEST(HttpTarget, ACutStreamIsAskedAgain) {
  const auto whole = test::events(kChatEvents);
  const std::string text = whole[0] + whole[1] + whole[2] + whole[3];
  // Also with a regular end of the reply in the middle of the stream.
  for (const bool cut : {true, false}) {
    for (const std::size_t size : {std::size_t{2}, whole[0].size() / 2, whole[0].size(),
                                   whole[0].size() + whole[1].size()}) {
      SCOPED_TRACE(size);
      FakeServer server([&](const FakeRequest& request) {
        if (request.number > 1) return FakeReply{.pieces = whole};
        return FakeReply{.pieces = {text.substr(0, size)}, .cut = cut};
      });
      HttpTargetOptions o = options(server, Api::kChat);
      o.stream = true;
      const Completion c = complete_one(server, o);
      EXPECT_EQ(c.stop_reason, StopReason::kStopString) << c.error;
      EXPECT_EQ(c.text, " 42");
      EXPECT_EQ(c.retries, 2);
    }
  }
}

TEST(HttpTarget, AReplyThatIsNoStreamIsRefused) {
  for (const char* body : {"<html>", "{\"choices\":[]}"}) {
    FakeServer server([&](const FakeRequest&) { return FakeReply{.body = body}; });
    HttpTargetOptions o = options(server);
    o.stream = true;
    HttpTarget target(o);
    test::expect_input_error([&] { complete(target, 1); }, {"a stream of events", body});
  }
}

TEST(HttpTarget, FailuresOfTheServerAreTriedAgainAndCounted) {
  const std::string answer = test::completions_reply("4");
  const std::vector<FakeReply> failures = {
      {.status = 429, .body = "slow down", .headers = {{"Retry-After", "0"}}},
      {.status = 500, .body = "oops"},
      {.status = 503, .body = "<html>gateway</html>", .content_type = "text/html"},
      {.reset = true},
      {.pieces = {answer.substr(0, 20)}, .cut = true},
      {.body = answer.substr(0, 20)},
  };
  for (std::size_t i = 0; i < failures.size(); ++i) {
    SCOPED_TRACE(i);
    FakeServer server([&](const FakeRequest& request) {
      return request.number < 3 ? failures[i] : FakeReply{.body = answer};
    });
    const Completion c = complete_one(server, options(server));
    EXPECT_EQ(c.stop_reason, StopReason::kStopString) << c.error;
    EXPECT_EQ(c.retries, 3);
    EXPECT_EQ(server.posts().size(), 4U);
  }
}

TEST(HttpTarget, TheTriesHaveAnEnd) {
  FakeServer server([](const FakeRequest&) { return FakeReply{.status = 500, .body = "oops"}; });
  HttpTargetOptions o = options(server);
  o.retries = 2;
  const Completion c = complete_one(server, o);
  EXPECT_EQ(c.stop_reason, StopReason::kError);
  EXPECT_EQ(c.error, server.url() + "/v1/completions: status 500: oops (tries: 3)");
  EXPECT_EQ(server.posts().size(), 3U);
}

// One request that the server always fails at does not end the others, whatever the order.
TEST(HttpTarget, OneFailureIsNoLostServer) {
  FakeServer server([](const FakeRequest& request) {
    return request.json.at("prompt") == "0" ? FakeReply{.status = 500, .body = "oops"}
                                            : echo(request);
  });
  HttpTargetOptions o = options(server);
  o.retries = 1;
  HttpTarget target(o);
  const auto all = complete(target, 5, 1);
  EXPECT_EQ(all[0].stop_reason, StopReason::kError);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].text, std::to_string(i));
}

TEST(HttpTarget, ATimeoutIsAFailure) {
  std::mutex mutex;
  std::condition_variable ended;
  bool end = false;
  FakeServer server([&](const FakeRequest& request) {
    std::unique_lock lock(mutex);
    if (request.number == 0) ended.wait(lock, [&] { return end; });
    return echo(request);
  });
  HttpTargetOptions o = options(server);
  o.timeout_seconds = 0.3;
  o.retries = 0;
  const Completion c = complete_one(server, o);
  {
    const std::lock_guard lock(mutex);
    end = true;
  }
  ended.notify_all();
  EXPECT_EQ(c.stop_reason, StopReason::kError);
  EXPECT_THAT(c.error, HasSubstr("no whole reply within 0.3 s"));
}

// The limit is for the whole reply: a server that always sends a little does not get round it.
TEST(HttpTarget, ATrickleIsATimeout) {
  FakeServer server([](const FakeRequest&) {
    return FakeReply{.pieces = {std::string(1000, ' ')}, .trickle = true};
  });
  HttpTargetOptions o = options(server);
  o.timeout_seconds = 0.3;
  o.retries = 0;
  EXPECT_THAT(complete_one(server, o).error, HasSubstr("no whole reply within 0.3 s"));
}

TEST(HttpTarget, MistakesOfConfigurationEndTheCall) {
  const std::vector<std::pair<FakeReply, std::vector<std::string>>> cases = {
      {{.status = 404, .body = "{\"detail\":\"Not Found\"}"},
       {"/v1/completions", "status 404", "Not Found"}},
      {{.status = 400, .body = "prompt\ntoo long"}, {"status 400: prompt too long"}},
      {{.status = 401}, {"status 401, an empty body"}},
      {{.status = 307, .headers = {{"Location", "https://other/"}}}, {"307", "https://other/"}},
      {{.body = "<html>hello</html>", .content_type = "text/html"}, {"JSON", "<html>hello"}},
      {{.body = "{}"}, {"/v1/completions", "'choices'"}},
      {{.body = R"({"choices":[{"text":"4","finish_reason":"stop"}]})"}, {"token counts"}},
  };
  for (const auto& [reply, parts] : cases) {
    SCOPED_TRACE(parts[0]);
    FakeServer server([&, r = reply](const FakeRequest&) { return r; });
    HttpTarget target(options(server));
    test::expect_input_error([&] { complete(target, 50, 1); }, parts);
    EXPECT_EQ(server.posts().size(), 1U);  // neither again nor for the others
    test::expect_input_error([&] { target.check(); }, parts);
  }
}

TEST(HttpTarget, AnswersBeforeAMistakeAreReported) {
  FakeServer server([](const FakeRequest& request) {
    return request.json.at("prompt") == "3" ? FakeReply{.status = 400, .body = "too long"}
                                            : echo(request);
  });
  HttpTarget target(options(server));
  std::set<std::size_t> reported;
  EXPECT_THROW(target.complete(requests(9), 1,
                               [&](std::size_t i, const Completion&) { reported.insert(i); }),
               InputError);
  EXPECT_EQ(reported, (std::set<std::size_t>{0, 1, 2}));
}

TEST(HttpTarget, ALostServerEndsTheRunEarly) {
  FakeServer* running = nullptr;
  std::thread stopper;
  FakeServer server([&](const FakeRequest& request) {
    if (request.number == 3) stopper = std::thread([&] { running->stop(); });
    return echo(request);
  });
  running = &server;
  HttpTargetOptions o = options(server);
  o.retries = 1;
  HttpTarget target(o);
  const auto all = complete(target, 400, 2);
  stopper.join();
  std::size_t answered = 0, not_asked = 0;
  for (const Completion& c : all) {
    answered += c.stop_reason != StopReason::kError ? 1 : 0;
    not_asked += c.error.starts_with("not asked: " + server.url()) ? 1 : 0;
  }
  EXPECT_GE(answered, 3U);
  EXPECT_GE(not_asked, 100U);
}

TEST(HttpTarget, AnUnreachableHostIsInfrastructure) {
  std::string url;
  {
    const FakeServer gone(echo);
    url = gone.url();
  }
  try {
    HttpTargetOptions o;
    o.url = url;
    o.retries = 1;
    o.backoff_seconds = 0.001;
    const HttpTarget target(o);
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_EQ(error.code(), ExitCode::kInfrastructure);
    EXPECT_THAT(error.what(), HasSubstr("after 2 tries: " + url + "/v1/models: no connection"));
  }
}

TEST(HttpTarget, ConnectionsAreKept) {
  FakeServer server(echo);
  HttpTarget target(options(server));
  complete(target, 30, 3);
  std::set<int> connections;
  for (const FakeRequest& post : server.posts()) connections.insert(post.connection);
  EXPECT_LE(connections.size(), 3U);
  EXPECT_EQ(server.posts().size(), 30U);
}

// All requests are with the server at once before the first is answered.
void expect_all_at_once(std::size_t count) {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t here = 0;
  FakeServer server([&](const FakeRequest& request) {
    std::unique_lock lock(mutex);
    ++here;
    changed.notify_all();
    const bool all = changed.wait_for(lock, std::chrono::minutes(4), [&] { return here == count; });
    return all ? echo(request) : FakeReply{.status = 400, .body = "not all came"};
  });
  HttpTarget target(options(server));
  const auto all = complete(target, count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(all[i].text, std::to_string(i));
    EXPECT_EQ(all[i].retries, 0);
  }
}

TEST(HttpTarget, AllAtOnce) {
  expect_all_at_once(1319);
}

TEST(HttpTarget, AtMostTheConcurrencyAsked) {
  std::mutex mutex;
  int here = 0, most = 0;
  FakeServer server([&](const FakeRequest& request) {
    {
      const std::lock_guard lock(mutex);
      most = std::max(most, ++here);
    }
    std::this_thread::yield();
    const std::lock_guard lock(mutex);
    --here;
    return echo(request);
  });
  HttpTarget target(options(server));
  complete(target, 100, 4);
  EXPECT_LE(most, 4);
}

TEST(HttpTarget, AnExceptionOfTheCallerEndsTheCall) {
  std::mutex mutex;
  std::condition_variable ended;
  bool end = false;
  FakeServer server([&](const FakeRequest& request) {
    std::unique_lock lock(mutex);
    if (request.number > 0) ended.wait(lock, [&] { return end; });
    return echo(request);
  });
  HttpTarget target(options(server));
  // The others are with the server, which will not answer them: they are ended, not waited for.
  EXPECT_THROW(target.complete(requests(20), 4,
                               [](std::size_t, const Completion&) {
                                 throw InfrastructureError("disk", "full");
                               }),
               InfrastructureError);
  EXPECT_LE(server.posts().size(), 5U);
  {
    const std::lock_guard lock(mutex);
    end = true;
  }
  ended.notify_all();
}

TEST(HttpTarget, TheKeyIsSentAndShownNowhere) {
  FakeServer server(
      [](const FakeRequest& request) -> FakeReply {
        if (request.number == 0) return echo(request);
        return {.status = 401,
                .body = "no such key: " + request.headers.find("Authorization")->second};
      },
      [](const FakeRequest& request) -> FakeReply {
        // SGLang shows its arguments, the key among them.
        if (request.path == "/get_server_info") {
          return {.body = R"({"version":"0.5.18 sesame","api_key":"sesame","tp_size":8})"};
        }
        return FakeServer::models(request);
      });
  HttpTargetOptions o = options(server);
  o.api_key = "sesame";
  HttpTarget target(o);
  target.check();
  for (const FakeRequest& request : server.requests()) {
    ASSERT_EQ(request.headers.count("Authorization"), 1U) << request.path;
    EXPECT_EQ(request.headers.find("Authorization")->second, "Bearer sesame");
  }
  EXPECT_EQ(target.model_fingerprint(), "served=fake version=0.5.18 [key] tp_size=8");
  EXPECT_THAT(target.settings(), testing::Not(HasSubstr("sesame")));
  try {
    complete(target, 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no such key: Bearer [key]"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("sesame")));
  }
}

TEST(HttpTarget, LikelihoodsWhereTheServerReturnsThem) {
  FakeServer server([](const FakeRequest& request) {
    json reply = json::parse(test::completions_reply("x"));
    if (request.json.contains("echo") && request.json["prompt"] != "mute") {
      reply["usage"]["prompt_tokens"] = 2;
      reply["choices"][0]["logprobs"]["token_logprobs"] = json::array(
          {nullptr, -0.5 * static_cast<double>(request.json["prompt"].get<std::string>().size()),
           -3});
    }
    return request.number == 1 ? FakeReply{.status = 503} : FakeReply{.body = reply.dump()};
  });
  HttpTarget target(options(server));
  const std::vector<std::string> texts = {"ab", "abcd"};
  const auto found = target.likelihoods(texts);
  EXPECT_EQ(found[0].log_probability, -1);
  EXPECT_EQ(found[1].log_probability, -2);
  EXPECT_EQ(server.posts().size(), 3U);  // one was tried again
  const std::vector<std::string> mute = {"mute"};
  test::expect_input_error([&] { target.likelihoods(mute); },
                           {"/v1/completions", "log probabilities of the prompt", "without them"});
  HttpTarget chat(options(server, Api::kChat));
  test::expect_input_error([&] { chat.likelihoods(texts); }, {"--api chat"});
}

TEST(HttpTarget, SenselessOptionsAreRefused) {
  FakeServer server(echo);
  const auto refused = [&](const std::function<void(HttpTargetOptions&)>& change,
                           const std::string& part) {
    HttpTargetOptions o = options(server);
    change(o);
    test::expect_input_error([&] { HttpTarget target(o); }, {part});
  };
  refused([](auto& o) { o.timeout_seconds = 0; }, "--timeout");
  refused([](auto& o) { o.timeout_seconds = std::nan(""); }, "--timeout");
  refused([](auto& o) { o.retries = -1; }, "--retries");
  refused([](auto& o) { o.api_key = "a\r\nX: y"; }, "API key");
  refused([](auto& o) { o.url = "host"; }, "endpoint");
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace cupel
