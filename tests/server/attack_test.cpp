// What no honest client sends: the right status, nothing leaked, and the server goes on.
#include <thread>

#include "server/served.h"
#include <gmock/gmock.h>

#include "cupel/server/bearer_key.h"

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string raw(const Served& server, int port, const std::string& bytes) {
  (void)server;
  RawConnection connection(port);
  connection.send(bytes);
  return connection.receive();
}

void expect_alive(const Served& server) {
  server.post("/generate", {{"text", "Ivy"}, {"sampling_params", {{"max_new_tokens", 1}}}});
}

ServerOptions hasty_options() {
  ServerOptions options = quiet_options();
  options.limits.header_time = std::chrono::milliseconds(200);
  options.limits.body_time = std::chrono::milliseconds(300);
  options.limits.idle_time = std::chrono::milliseconds(400);
  return options;
}

TEST(Attack, SlowHeadersAndBodies) {
  Served server(hasty_options());
  RawConnection headers(server->port()), body(server->port()), idle(server->port());
  RawConnection trickle(server->port());
  headers.send("POST /generate HTTP/1.1\r\nHost: x\r\n");
  body.send("POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"text\"");
  std::jthread slowly([&](const std::stop_token& stop) {
    trickle.send("GET /health HTTP/1.1\r\n");
    while (!stop.stop_requested() && trickle.send("X: y\r\n")) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_THAT(headers.receive(), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(body.receive(), StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(trickle.receive(), AnyOf(StartsWith("HTTP/1.1 408"), ""));
  EXPECT_EQ(idle.receive(), "");
  slowly.request_stop();
  slowly.join();
  expect_alive(server);
}

TEST(Attack, BodiesBeyondTheLimit) {
  Served server;
  const std::size_t limit = ServerLimits{}.body_bytes;
  // Announced: refused before it comes.
  EXPECT_THAT(raw(server, server->port(),
                  "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n{"),
              StartsWith("HTTP/1.1 413"));
  // Sent in full all the same: the client still gets to read why.
  RawConnection full(server->port());
  std::thread sender([&] { full.send(raw_post("/generate", std::string(100'000'000, ' '))); });
  EXPECT_THAT(full.receive(), AnyOf(StartsWith("HTTP/1.1 413"), ""));
  sender.join();
  // Not announced.
  RawConnection chunked(server->port());
  std::thread chunks([&] {
    chunked.send("POST /generate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "100000\r\n" + std::string(1 << 20, ' ') + "\r\n";
    for (std::size_t sent = 0; sent <= limit; sent += 1 << 20) {
      if (!chunked.send(chunk)) return;
    }
  });
  EXPECT_THAT(chunked.receive(), StartsWith("HTTP/1.1 413"));
  chunks.join();
  expect_alive(server);
}

TEST(Attack, HeadersBeyondTheLimit) {
  Served server;
  std::string many = "GET /health HTTP/1.1\r\n";
  for (int i = 0; i < 20000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_THAT(raw(server, server->port(), many + "\r\n"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(raw(server, server->port(),
                  "GET /health HTTP/1.1\r\nX: " + std::string(100'000, 'y') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(
      raw(server, server->port(), "GET /" + std::string(100'000, 'y') + " HTTP/1.1\r\n\r\n"),
      StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(raw(server, server->port(), "GET /" + std::string(9'000, 'y') + " HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 414"));
  std::string ranges = "bytes=0-0";
  for (int i = 0; i < 1900; ++i) ranges += ",0-0";
  EXPECT_THAT(raw(server, server->port(),
                  "GET /health HTTP/1.1\r\nConnection: close\r\nRange: " + ranges + "\r\n\r\n"),
              StartsWith("HTTP/1.1 "));
  expect_alive(server);
}

TEST(Attack, WhatIsNoRequest) {
  Served server;
  const std::string bad[] = {
      std::string("\x16\x03\x01\x02\0\x01\0\r\n\r\n", 11),  // TLS
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "\r\n\r\n",
      "POST /generate HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
      "POST /generate HTTP/1.1\r\nContent-Length: 5x\r\n\r\nhello",
      "POST /generate HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST /generate HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 30\r\n\r\n{}",
      "POST /generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
      "POST /generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
      "POST /generate HTTP/1.1\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n\r\nnope",
  };
  for (const std::string& request : bad) {
    SCOPED_TRACE(request);
    EXPECT_THAT(raw(server, server->port(), request), AnyOf(StartsWith("HTTP/1.1 4"), ""));
  }
  EXPECT_THAT(raw(server, server->port(),
                  "POST /generate HTTP/1.1\r\nContent-Length: 4\r\n"
                  "Content-Type: multipart/form-data; boundary=x\r\n\r\nnope"),
              StartsWith("HTTP/1.1 415"));
  expect_alive(server);
}

TEST(Attack, Paths) {
  Served server;
  for (const std::string path : {"/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd",
                                 "/v1/../v1/models", "/v1/models/", "/%00", "/v1/models%00",
                                 "http://x/v1/models", "/v1/models/../../config.json", "*"}) {
    SCOPED_TRACE(path);
    const std::string reply =
        raw(server, server->port(), "GET " + path + " HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 404"));
    EXPECT_THAT(reply, Not(HasSubstr("root:")));
  }
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"}) {
    const std::string reply = raw(server, server->port(),
                                  std::string(method) +
                                      " /generate HTTP/1.1\r\nConnection: close\r\n"
                                      "Content-Length: 0\r\n\r\n");
    EXPECT_THAT(reply, AnyOf(StartsWith("HTTP/1.1 405"), StartsWith("HTTP/1.1 400"))) << method;
  }
  expect_alive(server);
}

TEST(Attack, Json) {
  Served server;
  const auto message = [&](const std::string& body) {
    return json::parse(server.post_text("/generate", body, 400))["error"]["message"]
        .get<std::string>();
  };
  const std::string deep(10'000, '[');
  EXPECT_THAT(message("{\"text\":" + deep + "1" + std::string(10'000, ']') + "}"),
              HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(message("{\"text\":" + deep), HasSubstr("nested deeper than 64 levels"));
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(message(objects), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(message("{\"text\":\"\xc3\x28\"}"), HasSubstr("expected JSON in UTF-8"));
  EXPECT_THAT(message("{\"text\":\"\xed\xa0\x80\"}"), HasSubstr("expected JSON in UTF-8"));
  EXPECT_THAT(message("{\"text\":\"\\ud800\"}"), HasSubstr("expected JSON in UTF-8"));
  EXPECT_THAT(message(""), HasSubstr("expected JSON in UTF-8"));
  EXPECT_THAT(message("[1]"), HasSubstr("expected a JSON object, found a list of 1"));
  EXPECT_THAT(message("{\"text\":\"a\",\"sampling_params\":{\"temperature\":1e999}}"),
              AnyOf(HasSubstr("out of range"), HasSubstr("expected a number")));
  EXPECT_THAT(message("{\"text\":\"a\",\"sampling_params\":{\"temperature\":1e300}}"),
              HasSubstr("expected a number"));
  EXPECT_THAT(message("{\"text\":\"secret prompt\",\"stream\":7}"), Not(HasSubstr("secret")));
  // Zero bytes and every control character are part of a text like any other.
  server.post("/generate", {{"text", std::string("a\0b\x01\x7f", 5)},
                            {"sampling_params", {{"max_new_tokens", 1}}}});
  expect_alive(server);
}

TEST(Attack, Keys) {
  ServerOptions options = quiet_options();
  options.api_key = "k-1234567890";
  Served server(options);
  const auto status = [&](const std::string& path, const std::string& header) {
    auto client = server.client();
    httplib::Headers headers;
    if (!header.empty()) headers.emplace("Authorization", header);
    const auto reply = client.Get(path.c_str(), headers);
    EXPECT_TRUE(reply);
    EXPECT_THAT(reply->body, Not(HasSubstr("1234567890")));
    return reply->status;
  };
  EXPECT_EQ(status("/v1/models", "Bearer k-1234567890"), 200);
  for (const std::string header :
       {"", "Bearer", "Bearer ", "Bearer k-123456789", "Bearer k-12345678901", "k-1234567890",
        "Basic k-1234567890", "Bearer  k-1234567890"}) {
    EXPECT_EQ(status("/v1/models", header), 401) << header;
    EXPECT_EQ(status("/server_info", header), 401) << header;
    EXPECT_EQ(status("/metrics", header), 401) << header;
  }
  EXPECT_EQ(status("/health", ""), 200);
  // Before the body is read.
  EXPECT_THAT(raw(server, server->port(),
                  "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(server.client().Get("/server_info", {{"Authorization", "Bearer k-1234567890"}})->body,
              Not(HasSubstr("k-1234567890")));
}

TEST(BearerKey, MatchesTheKeyAlone) {
  EXPECT_TRUE(bearer_key_matches("Bearer abc", "abc"));
  for (const char* header : {"", "abc", "Bearer", "Bearer ", "Bearer ab", "Bearer abcd",
                             "Bearer abC", "bearer abc", "Bearer abc "}) {
    EXPECT_FALSE(bearer_key_matches(header, "abc")) << header;
  }
}

TEST(Attack, ConnectionsBeyondTheLimit) {
  ServerOptions options = quiet_options();
  options.limits.connections = 3;
  Served server(options);
  {
    RawConnection one(server->port()), two(server->port()), three(server->port());
    // One more is told so, at once.
    EXPECT_TRUE(eventually([&] {
      RawConnection more(server->port());
      return more.receive().starts_with("HTTP/1.1 503");
    }));
  }
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(server.client().Get("/health")); }));
}

// Two requests in one piece, and what follows an error, which may be the rest of its body.
TEST(Attack, SeveralRequestsOnOneConnection) {
  Served server;
  const std::string two = raw(server, server->port(),
                              "GET /health HTTP/1.1\r\n\r\n"
                              "GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(two, HasSubstr("max_model_len"));
  const std::string hidden = raw(server, server->port(),
                                 "GET /nothing HTTP/1.1\r\nContent-Length: 30\r\n\r\n"
                                 "GET /v1/models HTTP/1.1\r\n\r\n");
  EXPECT_THAT(hidden, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(hidden, Not(HasSubstr("max_model_len")));
  const std::string body = raw(server, server->port(),
                               "GET /health HTTP/1.1\r\nContent-Length: 47\r\n\r\n"
                               "GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(body, Not(HasSubstr("max_model_len")));
}

}  // namespace
}  // namespace cupel::test
