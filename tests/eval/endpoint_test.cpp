#include "cupel/eval/endpoint.h"

#include "support/expect_error.h"

#include "cupel/eval/retry.h"

namespace cupel {
namespace {

TEST(Endpoint, WhereTheInterfacesAre) {
  const auto text = [](const std::string& url) {
    return parse_endpoint(url).text("/v1/completions");
  };
  const std::string expected = "http://127.0.0.1:30000/v1/completions";
  EXPECT_EQ(text("http://127.0.0.1:30000"), expected);
  EXPECT_EQ(text("http://127.0.0.1:30000/"), expected);
  EXPECT_EQ(text("http://127.0.0.1:30000/v1"), expected);
  EXPECT_EQ(text("http://127.0.0.1:30000//v1//"), expected);
  EXPECT_EQ(text("https://host/gateway/v1/"), "https://host/gateway/v1/completions");
  EXPECT_EQ(text("http://[::1]:80"), "http://[::1]:80/v1/completions");
}

TEST(Endpoint, OtherUrlsAreRefused) {
  for (const char* url :
       {"", "127.0.0.1:30000", "ftp://host", "http://", "http://:80", "http://host:0",
        "http://host:65536", "http://host:", "http://host:8o", "http://[::1", "http://host?key=1",
        "http://host#a", "http://ho st", "http://host/\r\nX: y"}) {
    SCOPED_TRACE(url);
    test::expect_input_error([&] { parse_endpoint(url); }, {"endpoint", "http://127.0.0.1:30000"});
  }
  try {
    parse_endpoint("http://me:sesame@host");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--api-key-env"));
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("sesame")));
  }
}

TEST(Endpoint, Interfaces) {
  for (const Api api : {Api::kCompletions, Api::kChat, Api::kGenerate}) {
    EXPECT_EQ(parse_api(api_name(api)), api);
  }
  test::expect_input_error([] { parse_api("Chat"); }, {"completions, chat or generate", "Chat"});
}

TEST(Backoff, DoublesWithinBoundsAndObeysTheServer) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Backoff backoff(0.5, seed);
    for (int retry = 1; retry <= 40; ++retry) {
      const double plain = retry < 7 ? 0.5 * (1 << (retry - 1)) : Backoff::kLongestWait;
      const double wait = backoff.wait(retry, std::nullopt);
      EXPECT_GE(wait, 0.5 * plain);
      EXPECT_LE(wait, 1.5 * plain);
    }
    EXPECT_EQ(backoff.wait(1, 9.0), 9.0);
    EXPECT_EQ(backoff.wait(1, 1e6), Backoff::kLongestAsked);
  }
  EXPECT_NE(Backoff(0.5, 1).wait(1, {}), Backoff(0.5, 2).wait(1, {}));
}

}  // namespace
}  // namespace cupel
