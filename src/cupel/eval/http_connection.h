// One kept-alive connection to a server, and which failures may pass.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cupel/eval/endpoint.h"

namespace httplib {
class Client;
}

namespace cupel {

enum class FailureKind {
  kServer,        // it says so, or replies what is no answer
  kNoConnection,  // refused, or not in time
  kCut,           // closed, reset or ended before the whole reply
  kTimeout,
};

// The server or the way to it failed; the same request may succeed later.
class TransientError : public std::runtime_error {
 public:
  TransientError(const std::string& what, bool unreachable,
                 std::optional<double> retry_after_seconds = std::nullopt,
                 FailureKind kind = FailureKind::kServer)
      : std::runtime_error(what),
        unreachable_(unreachable),
        retry_after_seconds_(retry_after_seconds),
        kind_(kind) {}

  // Nothing answers, as opposed to one request that the server fails at.
  bool unreachable() const { return unreachable_; }
  std::optional<double> retry_after_seconds() const { return retry_after_seconds_; }
  FailureKind kind() const { return kind_; }

 private:
  bool unreachable_;
  std::optional<double> retry_after_seconds_;
  FailureKind kind_;
};

struct HttpReply {
  int status = 0;
  std::string body;
  std::string location;  // of a redirection, which is never followed: the key would travel along
  std::optional<double> retry_after_seconds;
};

struct HttpSettings {
  EndpointUrl endpoint;
  std::string api_key;           // sent as a bearer token unless empty; appears in no error
  double timeout_seconds = 600;  // for a whole reply
};

// Throws InputError for a URL that parse_endpoint() refuses, a time limit that is none, and a key
// that cannot stand in a header line, which is not shown.
HttpSettings checked_settings(const std::string& url, const std::string& api_key,
                              double timeout_seconds);

class HttpConnection {
 public:
  explicit HttpConnection(const HttpSettings& settings);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // `path` begins with a slash and is appended to the endpoint's prefix. Throw TransientError when
  // no whole reply came: refused, reset, cut, or beyond the timeout. A reply of any status is
  // returned.
  HttpReply get(const std::string& path);
  HttpReply post(const std::string& path, const std::string& json);
  // Hands the body of a reply of status 200 to `piece` as it comes, in pieces of any size; its
  // exceptions end the exchange and pass.
  HttpReply post(const std::string& path, const std::string& json,
                 const std::function<void(std::string_view)>& piece);

  // Ends an exchange that another thread is in.
  void stop();

 private:
  HttpReply exchange(const std::string& method, const std::string& path, const std::string& json,
                     const std::function<void(std::string_view)>& piece);

  HttpSettings settings_;
  std::unique_ptr<httplib::Client> client_;
};

// The reply as it can be shown: its status and the first bytes of its body, in one line, without
// the key.
std::string describe_reply(const HttpReply& reply, std::string_view api_key);

// `text` with every occurrence of the key replaced.
std::string without_key(std::string text, std::string_view api_key);

// The first bytes of `text` in one line of printable ASCII.
std::string first_bytes(std::string_view text);

}  // namespace cupel
