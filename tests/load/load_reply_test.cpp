#include "cupel/load/load_reply.h"

#include "load/streams.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/load/load_request.h"

namespace cupel {
namespace {

using nlohmann::json;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using testing::HasSubstr;

constexpr Api kApis[] = {Api::kCompletions, Api::kChat, Api::kGenerate};

LoadReply ask(const FakeServer& server, Api api, double timeout = 20) {
  const BenchTarget target = test::bench_target(server, api, timeout);
  HttpConnection connection(target.http);
  const Workload workload{.input_len = 3, .output_len = 4, .range_ratio = 1, .vocabulary = 9};
  const std::string body =
      load_body({.api = api, .served_model = "fake", .ignore_eos = true}, draw_prompt(workload, 1));
  return stream_reply(connection, target.http, api, body, 1, LoadClock::now());
}

// What does not depend on time.
std::string counted(const LoadReply& reply) {
  const SequenceTimes& s = reply.times.sequences().front();
  return json{reply.reason,  s.tokens,   s.events,
              s.gaps.size(), s.finished, reply.times.usage() ? reply.times.usage()->completion : -1}
      .dump();
}

TEST(LoadReply, WhateverThePiecesAre) {
  for (const Api api : kApis) {
    SCOPED_TRACE(api_name(api));
    std::string whole;
    for (const std::string& event : test::events(test::token_events(load_path(api), 4))) {
      whole += event;
    }
    std::vector<std::string> pieces = {whole};
    FakeServer server([&](const FakeRequest&) { return FakeReply{.pieces = pieces}; });
    const std::string expected = json{"", 4, 4, 3, true, 4}.dump();
    EXPECT_EQ(counted(ask(server, api)), expected);
    for (std::size_t cut = 1; cut < whole.size(); cut += 3) {
      pieces = {whole.substr(0, cut), whole.substr(cut)};
      ASSERT_EQ(counted(ask(server, api)), expected) << cut;
    }
    pieces.clear();
    for (const char byte : whole) pieces.emplace_back(1, byte);
    const LoadReply reply = ask(server, api);
    EXPECT_EQ(counted(reply), expected);
    const SequenceTimes& s = reply.times.sequences().front();
    ASSERT_TRUE(s.first_token);
    EXPECT_GT(*s.first_token, 0);
    double sum = *s.first_token;
    for (const double gap : s.gaps) sum += gap;
    EXPECT_NEAR(sum, s.last_token, 1e-9);
    EXPECT_LE(s.last_token, reply.end);
  }
}

TEST(LoadReply, AsksForWhatSglangAsks) {
  FakeServer server(test::stream_answer);
  for (const Api api : kApis) EXPECT_EQ(ask(server, api).reason, "");
  const auto posts = server.posts();
  ASSERT_EQ(posts.size(), 3U);
  EXPECT_EQ(posts[0].path, "/v1/completions");
  EXPECT_EQ(posts[0].json["prompt"].size(), 3U);
  EXPECT_EQ(posts[0].json["model"], "fake");
  EXPECT_EQ(posts[1].path, "/v1/chat/completions");
  for (int i = 0; i < 2; ++i) {
    const json& body = posts[static_cast<std::size_t>(i)].json;
    EXPECT_EQ(body["max_tokens"], 4);
    EXPECT_EQ(body["temperature"], 0);
    EXPECT_EQ(body["ignore_eos"], true);
    EXPECT_EQ(body["stream"], true);
    EXPECT_EQ(body["stream_options"]["include_usage"], true);
  }
  EXPECT_EQ(posts[2].path, "/generate");
  EXPECT_EQ(posts[2].json["input_ids"], posts[0].json["prompt"]);
  EXPECT_EQ(posts[2].json["stream"], true);
  EXPECT_EQ(posts[2].json["sampling_params"],
            (json{{"temperature", 0}, {"max_new_tokens", 4}, {"ignore_eos", true}}));
}

TEST(LoadReply, FailuresHaveReasons) {
  FakeReply answer;
  FakeServer server([&](const FakeRequest&) { return answer; });
  const auto expect = [&](const FakeReply& reply, const std::string& reason,
                          const std::string& part, int status) {
    SCOPED_TRACE(reason);
    answer = reply;
    const LoadReply got = ask(server, Api::kGenerate);
    EXPECT_EQ(got.reason, reason);
    EXPECT_THAT(got.error, HasSubstr(part));
    EXPECT_EQ(got.status, status);
    EXPECT_GT(got.end, 0);
  };
  const auto some = [](bool end) {
    std::vector<json> parts = {test::generate_event(1, false), test::generate_event(2, end)};
    return test::events(parts, end);
  };
  expect({.status = 429, .body = "slow down"}, "status 429", "slow down", 429);
  expect({.status = 503, .body = "full"}, "status 503", "full", 503);
  expect({.status = 400, .body = "no such id"}, "status 400", "no such id", 400);
  expect({.pieces = some(false), .cut = true}, "connection cut", "cut", 0);
  expect({.reset = true}, "connection cut", "closed or reset", 0);
  expect({.pieces = {"data: {\"text\": 1}\n\n"}}, "malformed reply", "meta_info", 0);
  expect({.pieces = {"data: nonsense\n\n"}}, "malformed reply", "nonsense", 0);
  expect({.pieces = {"data: {\"error\": {\"message\": \"gone\"}}\n\n"}}, "error reported", "gone",
         0);
  expect({.pieces = some(false)}, "incomplete reply", "before its answers did", 200);
  expect({.body = "{}"}, "incomplete reply", "before its answers did", 200);
  expect({.pieces = test::events({test::generate_event(0, true)})}, "incomplete reply",
         "without a token", 200);
  // What came before the cut is told all the same.
  answer = {.pieces = some(false), .cut = true};
  EXPECT_EQ(ask(server, Api::kGenerate).times.sequences().front().tokens, 2);
  answer = {.pieces = some(true)};
  EXPECT_EQ(ask(server, Api::kGenerate).reason, "");
}

TEST(LoadReply, NoUsageNoServerNoTime) {
  FakeServer no_usage([](const FakeRequest& request) {
    auto parts = test::token_events(request.path, 4);
    parts.pop_back();
    return FakeReply{.pieces = test::events(parts)};
  });
  EXPECT_EQ(ask(no_usage, Api::kCompletions).reason, "incomplete reply");
  FakeServer trickles([](const FakeRequest& request) {
    return FakeReply{.pieces = test::events(test::token_events(request.path, 4)), .trickle = true};
  });
  EXPECT_EQ(ask(trickles, Api::kCompletions, 0.3).reason, "timeout");
  FakeServer gone(test::stream_answer);
  gone.stop();
  EXPECT_EQ(ask(gone, Api::kGenerate).reason, kNoConnectionReason);
}

}  // namespace
}  // namespace cupel
