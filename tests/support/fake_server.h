// A server of the interfaces that evaluations ask, on a port of 127.0.0.1 that the system chooses.
// What it replies is a script of the test.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cupel::test {

struct FakeRequest {
  std::string method;
  std::string path;
  std::string body;
  nlohmann::json json;  // the body of a POST
  std::multimap<std::string, std::string> headers;
  int connection = 0;  // the client's port: equal for requests over one connection
  int number = 0;      // of the POSTs, from 0
};

struct FakeReply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers = {};
  // Not empty: the body in pieces of a chunked reply instead.
  std::vector<std::string> pieces = {};
  bool cut = false;      // end the connection after the pieces, without the end of the reply
  bool trickle = false;  // the pieces byte by byte, a hundred a second
  bool reset = false;    // end the connection without any reply
};

class FakeServer {
 public:
  using Script = std::function<FakeReply(const FakeRequest&)>;

  // GET /v1/models names "fake"; other GETs are 404. `post` is called from many threads.
  explicit FakeServer(Script post);
  FakeServer(Script post, Script get);
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer();

  std::string url() const;
  // Ends the server: further connections are refused.
  void stop();

  // All requests so far.
  std::vector<FakeRequest> requests() const;
  std::vector<FakeRequest> posts() const;

  static FakeReply models(const FakeRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Whole replies of the three interfaces.
std::string completions_reply(const std::string& text, const std::string& reason = "stop");
std::string chat_reply(const std::string& text, const std::string& reason = "stop");
std::string generate_reply(const std::string& text, const std::string& reason = "stop");

// "data: ...\n\n" for each, and the end of the stream.
std::vector<std::string> events(const std::vector<nlohmann::json>& parts, bool end = true);

}  // namespace cupel::test
