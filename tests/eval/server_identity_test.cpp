#include "cupel/eval/server_identity.h"

#include <map>

#include "support/expect_error.h"
#include "support/fake_server.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

// What a server with these pages says it is; paths without a page are 404.
ServerIdentity ask(const std::map<std::string, FakeReply>& pages, Api api = Api::kCompletions,
                   const std::string& wanted = {}) {
  const FakeServer server([](const FakeRequest&) { return FakeReply{.status = 500}; },
                          [&](const FakeRequest& request) {
                            const auto page = pages.find(request.path);
                            return page == pages.end() ? FakeReply{.status = 404} : page->second;
                          });
  const HttpSettings settings{
      .endpoint = parse_endpoint(server.url()), .api_key = {}, .timeout_seconds = 60};
  HttpConnection connection(settings);
  return ask_identity(connection, settings, api, wanted);
}

FakeReply models(const std::string& names) {
  return {.body = R"({"data":[)" + names + "]}"};
}

TEST(ServerIdentity, Sglang) {
  const std::map<std::string, FakeReply> pages = {
      {"/v1/models", models(R"({"id":"flash"})")},
      {"/get_model_info", {.body = R"({"model_path":"/models/flash"})"}},
      {"/get_server_info",
       {.body = R"({"version":"0.5.18","attention_backend":"dsv4","kv_cache_dtype":"fp8_e4m3",)"
                R"("tp_size":8,"disable_radix_cache":true,"quantization":null,"random_seed":77,)"
                R"("api_key":"sesame","port":30000})"}}};
  for (const char* wanted : {"", "flash", "/models/flash"}) {
    const ServerIdentity identity = ask(pages, Api::kGenerate, wanted);
    EXPECT_EQ(identity.model, *wanted == '\0' ? "flash" : wanted);
    EXPECT_EQ(identity.backend, "dsv4");
    EXPECT_EQ(identity.details,
              "version=0.5.18 attention_backend=dsv4 kv_cache_dtype=fp8_e4m3 tp_size=8 "
              "disable_radix_cache=true");
  }
}

TEST(ServerIdentity, AnEarlySglangWithoutModelList) {
  EXPECT_EQ(ask({{"/get_model_info", {.body = R"({"model_path":"m"})"}}}, Api::kGenerate).model,
            "m");
}

TEST(ServerIdentity, Vllm) {
  const ServerIdentity identity = ask({{"/v1/models", models(R"({"id":"a"},{"id":"b"})")},
                                       {"/version", {.body = R"({"version":"0.10.1"})"}}},
                                      Api::kChat, "b");
  EXPECT_EQ(identity.model, "b");
  EXPECT_EQ(identity.backend, "");
  EXPECT_EQ(identity.details, "version=0.10.1");
}

TEST(ServerIdentity, AServerThatTellsNothing) {
  EXPECT_EQ(ask({}, Api::kCompletions, "m").model, "m");
  // A gateway that answers every path with its page.
  const FakeReply page{.body = "<html>", .content_type = "text/html"};
  EXPECT_EQ(ask({{"/v1/models", models(R"({"id":"a"})")}, {"/version", page}}).details, "");
}

TEST(ServerIdentity, WrongModelsAreRefused) {
  const auto two = models(R"({"id":"a"},{"id":"b"})");
  test::expect_input_error(
      [&] {
        ask({{"/v1/models", two}}, Api::kCompletions, "c");
      },
      {"--served-model", "one of a, b", "found c"});
  test::expect_input_error(
      [&] {
        ask({{"/v1/models", two}});
      },
      {"--served-model", "one of a, b", "none given"});
  test::expect_input_error([] { ask({}); }, {"/v1/models", "--served-model"});
  test::expect_input_error([] { ask({{"/v1/models", models("")}}); }, {"empty list"});
}

TEST(ServerIdentity, OtherRepliesAreErrors) {
  test::expect_input_error(
      [] {
        ask({{"/v1/models", {.body = "<html>hi", .content_type = "text/html"}}});
      },
      {"/v1/models", "a JSON object", "<html>hi"});
  test::expect_input_error(
      [] {
        ask({{"/v1/models", {.status = 401, .body = "key?"}}});
      },
      {"status 401: key?"});
  EXPECT_THROW(ask({{"/v1/models", {.status = 503}}}), TransientError);
}

}  // namespace
}  // namespace cupel
