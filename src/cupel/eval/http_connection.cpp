#include "cupel/eval/http_connection.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include <fmt/format.h>
#include <httplib.h>
#include <signal.h>
#include <time.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kConnectSeconds = 10;
constexpr std::size_t kLargestBody = std::size_t{64} << 20U;
constexpr std::size_t kShownBytes = 160;

// The library writes to sockets without MSG_NOSIGNAL: a connection that the server has closed would
// end the program. The signal goes to the writing thread alone, so it is held back there.
class BrokenPipeHeldBack {
 public:
  BrokenPipeHeldBack() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  BrokenPipeHeldBack(const BrokenPipeHeldBack&) = delete;
  BrokenPipeHeldBack& operator=(const BrokenPipeHeldBack&) = delete;
  ~BrokenPipeHeldBack() {
    const timespec now{};
    while (::sigtimedwait(&pipe_, nullptr, &now) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

std::chrono::microseconds microseconds(double seconds) {
  return std::chrono::microseconds(std::max<std::int64_t>(1, std::llround(seconds * 1e6)));
}

std::optional<double> retry_after(const httplib::Response& response) {
  // Seconds; the other form, a date, is left to the back-off.
  const std::string text = response.get_header_value("Retry-After");
  const bool digits =
      !text.empty() && text.size() <= 6 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  return std::stod(text);
}

}  // namespace

std::string without_key(std::string text, std::string_view api_key) {
  constexpr std::string_view kMark = "[key]";
  if (api_key.empty()) return text;
  for (std::size_t at = text.find(api_key); at != std::string::npos;
       at = text.find(api_key, at + kMark.size())) {
    text.replace(at, api_key.size(), kMark);
  }
  return text;
}

std::string first_bytes(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) shown += byte < ' ' || byte == 0x7f ? ' ' : c;
  }
  if (text.size() > kShownBytes) shown += "...";
  return shown;
}

std::string describe_reply(const HttpReply& reply, std::string_view api_key) {
  std::string text = fmt::format("status {}", reply.status);
  if (!reply.location.empty()) text += fmt::format(", sent on to {}", first_bytes(reply.location));
  // The key goes first: the cut could leave a part of it.
  const std::string body = first_bytes(without_key(reply.body, api_key));
  text += body.empty() ? ", an empty body" : fmt::format(": {}", body);
  return without_key(std::move(text), api_key);
}

HttpSettings checked_settings(const std::string& url, const std::string& api_key,
                              double timeout_seconds) {
  if (!(timeout_seconds > 0 && timeout_seconds <= 1e6)) {
    throw InputError("--timeout", "seconds above 0 and at most 1e6",
                     fmt::format("{}", timeout_seconds));
  }
  for (const char c : api_key) {
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f) {
      throw InputError("API key", "printable ASCII without blanks", "another character");
    }
  }
  return {.endpoint = parse_endpoint(url), .api_key = api_key, .timeout_seconds = timeout_seconds};
}

HttpConnection::HttpConnection(const HttpSettings& settings)
    : settings_(settings), client_(std::make_unique<httplib::Client>(settings.endpoint.origin)) {
  client_->set_keep_alive(true);
  client_->set_tcp_nodelay(true);
  client_->set_follow_location(false);
  client_->set_connection_timeout(
      microseconds(std::min(settings.timeout_seconds, kConnectSeconds)));
  client_->set_read_timeout(microseconds(settings.timeout_seconds));
  client_->set_write_timeout(microseconds(settings.timeout_seconds));
}

HttpConnection::~HttpConnection() {
  const BrokenPipeHeldBack guard;  // TLS says good-bye
  client_.reset();
}

void HttpConnection::stop() {
  client_->stop();
}

HttpReply HttpConnection::get(const std::string& path) {
  return exchange("GET", path, {}, {});
}

HttpReply HttpConnection::post(const std::string& path, const std::string& json) {
  return exchange("POST", path, json, {});
}

HttpReply HttpConnection::post(const std::string& path, const std::string& json,
                               const std::function<void(std::string_view)>& piece) {
  return exchange("POST", path, json, piece);
}

HttpReply HttpConnection::exchange(const std::string& method, const std::string& path,
                                   const std::string& json,
                                   const std::function<void(std::string_view)>& piece) {
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  HttpReply reply;
  bool too_large = false;
  bool late = false;
  std::exception_ptr thrown;

  httplib::Request request;
  request.method = method;
  request.path = settings_.endpoint.prefix + path;
  request.headers = {{"Accept", "application/json, text/event-stream"}, {"User-Agent", "cupel"}};
  if (!settings_.api_key.empty()) {
    request.headers.emplace("Authorization", "Bearer " + settings_.api_key);
  }
  if (method == "POST") {
    request.body = json;
    request.headers.emplace("Content-Type", "application/json");
  }
  request.response_handler = [&](const httplib::Response& response) {
    reply.status = response.status;
    return true;
  };
  // The library's own time limit is for each read: a server that trickles would never reach it.
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    late = elapsed() > settings_.timeout_seconds;
    too_large = reply.body.size() + size > kLargestBody;
    if (late || too_large) return false;
    if (!piece || reply.status != 200) {
      reply.body.append(data, size);
      return true;
    }
    try {
      piece({data, size});
    } catch (...) {
      thrown = std::current_exception();
    }
    return thrown == nullptr;
  };

  httplib::Response response;
  auto error = httplib::Error::Success;
  bool whole = false;
  {
    const BrokenPipeHeldBack guard;
    whole = client_->send(request, response, error);
  }
  if (thrown) std::rethrow_exception(thrown);
  if (whole) {
    reply.status = response.status;
    reply.location = response.get_header_value("Location");
    reply.retry_after_seconds = retry_after(response);
    return reply;
  }
  const std::string url = settings_.endpoint.text(path);
  if (too_large) {
    throw TransientError(fmt::format("{}: a reply of more than {} bytes", url, kLargestBody),
                         false);
  }
  if (late || (error != httplib::Error::Connection && elapsed() >= settings_.timeout_seconds)) {
    throw TransientError(
        fmt::format("{}: no whole reply within {:g} s", url, settings_.timeout_seconds), true,
        std::nullopt, FailureKind::kTimeout);
  }
  std::string what = reply.status != 0 ? "the reply was cut" : "the connection was closed or reset";
  auto kind = FailureKind::kNoConnection;
  switch (error) {
    case httplib::Error::Connection:
      what = "no connection";
      break;
    case httplib::Error::ConnectionTimeout:
      what = "no connection in time";
      break;
    case httplib::Error::SSLConnection:
      what = "no TLS connection";
      break;
    case httplib::Error::SSLServerVerification:
      what = "the certificate is not trusted";
      break;
    default:
      kind = FailureKind::kCut;
  }
  throw TransientError(fmt::format("{}: {} ({})", url, what, httplib::to_string(error)), true,
                       std::nullopt, kind);
}

}  // namespace cupel
