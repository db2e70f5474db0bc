#include "cupel/server/http_server.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "cupel/server/bearer_key.h"
#include "cupel/server/connection.h"
#include "cupel/server/http_error.h"

namespace cupel {
namespace {

// Runs a connection where it was accepted; HttpServer gives it a thread.
class RunAtOnce final : public httplib::TaskQueue {
 public:
  // void, or bool in later versions of the library.
  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

  Accepted enqueue(std::function<void()> work) override {
    work();
    return static_cast<Accepted>(true);
  }
  void shutdown() override {}
};

// As many descriptors as connections need, where the system allows it.
void raise_descriptor_limit(int connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto wanted = static_cast<rlim_t>(connections) + 256;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted) {
    spdlog::warn("server: {} connections wanted, but only {} open files are allowed", connections,
                 limit.rlim_cur);
  }
}

class LibraryExchange final : public Exchange {
 public:
  LibraryExchange(Connection& connection, httplib::Response& response, std::string body)
      : connection_(connection), response_(response), body_(std::move(body)) {}

  const std::string& body() const override { return body_; }
  int socket() const override { return connection_.socket(); }
  AccessRecord& record() override { return connection_.record(); }
  void header(const std::string& name, const std::string& value) override {
    response_.set_header(name, value);
  }
  void reply(int status, const std::string& body, const std::string& type) override {
    response_.status = status;
    response_.set_content(body, type);
  }
  void stream(std::function<bool(const Write&)> next) override {
    response_.status = 200;
    response_.set_header("Cache-Control", "no-cache");
    response_.set_chunked_content_provider(
        "text/event-stream",
        [next = std::move(next), &connection = connection_](std::size_t, httplib::DataSink& sink) {
          bool good = true;
          const bool more = next([&](std::string_view bytes) {
            good = good && sink.write(bytes.data(), bytes.size());
            return good;
          });
          if (!good) connection.record().gone = true;
          if (good && !more) sink.done();
          return good;
        });
  }

 private:
  Connection& connection_;
  httplib::Response& response_;
  std::string body_;
};

void reply_error(httplib::Response& response, const HttpError& error) {
  response.status = error.status();
  response.set_content(error_body(error), "application/json");
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (error.status() == 503) response.set_header("Retry-After", "1");
}

// What this server requires beyond the library. Throws HttpError.
void check_headers(const httplib::Request& request, const ServerLimits& limits) {
  if (request.get_header_value_count("Content-Length") > 1) {
    throw HttpError(400, "Content-Length: expected one, found several");
  }
  if (request.has_header("Content-Length")) {
    const std::string length = request.get_header_value("Content-Length");
    constexpr std::size_t kDigits = 18;
    const bool number =
        !length.empty() && length.size() <= kDigits &&
        std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) throw HttpError(400, "Content-Length: expected a number of bytes");
    if (std::stoull(length) > limits.body_bytes) {
      throw HttpError(
          413, fmt::format("body: expected at most {} bytes, found {}", limits.body_bytes, length));
    }
  }
  // The library does not read it: it would look like the next request.
  const bool body =
      request.has_header("Transfer-Encoding") || request.get_header_value("Content-Length") != "0";
  if (body && request.method != "POST") {
    throw HttpError(400, fmt::format("body: expected none with {}", request.method));
  }
  if (request.is_multipart_form_data()) {
    throw HttpError(415, "Content-Type: expected application/json");
  }
}

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const ServerOptions& options, Metrics& metrics) : options_(options), metrics_(metrics) {
    raise_descriptor_limit(options.limits.connections);
    new_task_queue = [] { return new RunAtOnce; };
    set_tcp_nodelay(true);
    set_keep_alive_max_count(1'000'000);
    set_keep_alive_timeout(
        std::chrono::duration_cast<std::chrono::seconds>(options.limits.idle_time).count());
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return before_body(request, response);
    });
    set_error_handler(
        [](const httplib::Request&, httplib::Response& response) { name_fault(response); });
    const Server::Handler get = [this](const httplib::Request& request,
                                       httplib::Response& response) {
      handle(request, response, {});
    };
    Get(".*", get);
    Post(".*", [this](const httplib::Request& request, httplib::Response& response,
                      const httplib::ContentReader& read) {
      std::string body;
      if (read_body(read, body, response)) handle(request, response, std::move(body));
    });
  }

  void add(const std::string& method, const std::string& path, HttpServer::Handler handler,
           bool open) {
    routes_[path][method] = {std::move(handler), open};
  }

  void begin() {
    const std::string where = fmt::format("{}:{}", options_.host, options_.port);
    const bool any = options_.port == 0;
    port_ = any ? bind_to_any_port(options_.host) : options_.port;
    if (port_ < 0 || (!any && !bind_to_port(options_.host, options_.port))) {
      throw InputError("--host, --port", "an address of this machine that is free", where);
    }
    // The library's own queue holds five connections that wait.
    ::listen(svr_sock_, SOMAXCONN);
    listener_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
  }

  int bound_port() const { return port_; }

  int connections() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(open_.size());
  }

  // Further connections are refused, not left unheard: without its socket the library would break
  // off the streams that run.
  bool drain(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    draining_ = true;
    for (const auto& [connection, idle] : open_) {
      if (idle) ::shutdown(connection->socket(), SHUT_RD);
    }
    return ended_.wait_for(lock, limit, [&] { return open_.empty() && threads_ == 0; });
  }

  void end() {
    end_listening();
    std::unique_lock lock(mutex_);
    draining_ = true;
    for (const auto& [connection, idle] : open_) ::shutdown(connection->socket(), SHUT_RDWR);
    ended_.wait(lock, [&] { return threads_ == 0; });
  }

 private:
  struct Route {
    HttpServer::Handler handler;
    bool open = false;
  };

  void end_listening() {
    if (!listener_.joinable()) return;
    httplib::Server::stop();
    listener_.join();
  }

  // From the library, in the thread that accepts.
  bool process_and_close_socket(socket_t socket) override {
    bool room = false;
    {
      const std::scoped_lock lock(mutex_);
      room = !draining_ && threads_ < options_.limits.connections;
      if (room) ++threads_;
    }
    if (room) {
      try {
        std::thread([this, socket] {
          serve(socket);
          const std::scoped_lock lock(mutex_);
          --threads_;
          ended_.notify_all();
        }).detach();
        return true;
      } catch (const std::system_error&) {
        const std::scoped_lock lock(mutex_);
        --threads_;
      }
    }
    static constexpr std::string_view kRefusal =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
        "Connection: close\r\n\r\n";
    Connection connection(socket, options_.limits);
    ::send(socket, kRefusal.data(), kRefusal.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return true;
  }

  void serve(socket_t socket) {
    Connection connection(socket, options_.limits);
    bool go_on = set_idle(connection, true);
    while (go_on && connection.wait_for_request()) {
      const bool last = !set_idle(connection, false);
      bool closed = false;
      const bool served = process_request(connection, last, closed,
                                          [](httplib::Request& request) { prepare(request); });
      AccessRecord& record = connection.record();
      if (!served && record.status == 0) refuse(connection);
      log(record);
      // What follows an error may be the rest of its request.
      if (record.status >= 400) connection.linger();
      go_on = served && !closed && !last && record.status < 400 && set_idle(connection, true);
    }
    const std::scoped_lock lock(mutex_);
    open_.erase(&connection);
  }

  // False if no further requests are taken.
  bool set_idle(Connection& connection, bool idle) {
    const std::scoped_lock lock(mutex_);
    open_[&connection] = idle;
    return !draining_;
  }

  // Where the library gives up without a reply: within the request line.
  static void refuse(Connection& connection) {
    httplib::Response response;
    response.status = 0;
    name_fault(response);
    connection.record().status = response.status;
    if (response.status == 0) return;
    const std::string reply = fmt::format(
        "HTTP/1.1 {} Bad Request\r\nContent-Type: application/json\r\n"
        "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        response.status, response.body.size(), response.body);
    connection.write(reply.data(), reply.size());
  }

  // Before the library acts on the headers.
  static void prepare(httplib::Request& request) {
    // Replies are neither compressed nor cut.
    request.headers.erase("Accept-Encoding");
    request.headers.erase("Range");
    request.ranges.clear();
    // The library would read up to the end of the connection.
    if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
      request.headers.emplace("Content-Length", "0");
    }
  }

  // Replies of the library itself get a body of our form.
  static void name_fault(httplib::Response& response) {
    Connection& connection = *Connection::current();
    connection.record().status = response.status;
    if (!response.body.empty()) return;
    switch (connection.fault()) {
      case Connection::Fault::kHeadersTooLong:
        reply_error(response, {431, "headers: longer than this server takes"});
        break;
      case Connection::Fault::kTooSlow:
        reply_error(response, {408, "the request did not come in time"});
        break;
      case Connection::Fault::kClosed:
      case Connection::Fault::kNone:
        if (response.status >= 400) reply_error(response, {response.status, "not a request"});
    }
    connection.record().status = response.status;
    response.set_header("Connection", "close");
  }

  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response) {
    AccessRecord& record = Connection::current()->record();
    record.method = request.method;
    record.path = request.path;
    try {
      const Route& found = route(request);
      if (!found.open && !options_.api_key.empty() &&
          !bearer_key_matches(request.get_header_value("Authorization"), options_.api_key)) {
        throw HttpError(401, "Authorization: expected Bearer and the key of this server");
      }
      check_headers(request, options_.limits);
      return HandlerResponse::Unhandled;
    } catch (const HttpError& error) {
      fail(response, error);
      return HandlerResponse::Handled;
    }
  }

  const Route& route(const httplib::Request& request) const {
    const auto found = routes_.find(request.path);
    if (found == routes_.end()) throw HttpError(404, "no such path");
    const auto by_method = found->second.find(request.method == "HEAD" ? "GET" : request.method);
    if (by_method == found->second.end()) {
      throw HttpError(405, fmt::format("this path takes {}", found->second.begin()->first));
    }
    return by_method->second;
  }

  bool read_body(const httplib::ContentReader& read, std::string& body,
                 httplib::Response& response) const {
    bool too_long = false;
    const bool whole = read([&](const char* bytes, std::size_t size) {
      too_long = body.size() + size > options_.limits.body_bytes;
      if (!too_long) body.append(bytes, size);
      return !too_long;
    });
    if (whole) return true;
    if (too_long) {
      fail(response, {413, fmt::format("body: expected at most {} bytes, found more",
                                       options_.limits.body_bytes)});
    } else if (Connection::current()->fault() == Connection::Fault::kTooSlow) {
      fail(response, {408, "the body did not come in time"});
    } else {
      fail(response, {400, "the body was cut, or is not encoded as its headers say"});
    }
    return false;
  }

  static void fail(httplib::Response& response, const HttpError& error) {
    reply_error(response, error);
    response.set_header("Connection", "close");
    Connection::current()->record().status = error.status();
  }

  void handle(const httplib::Request& request, httplib::Response& response, std::string body) {
    Connection& connection = *Connection::current();
    LibraryExchange exchange(connection, response, std::move(body));
    if (options_.log_text) connection.record().text = exchange.body();
    try {
      route(request).handler(exchange);
      connection.record().status = response.status;
    } catch (...) {
      fail(response, as_http_error(std::current_exception()));
    }
  }

  void log(const AccessRecord& record) const {
    if (record.status == 0) return;  // the client left within its request
    metrics_.http_request(routes_.count(record.path) > 0 ? record.path : "other", record.status);
    if (!options_.log_requests) return;
    const auto seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - record.start).count();
    const bool known = routes_.count(record.path) > 0;
    spdlog::info("{} {} {}{} {} prompt tokens, {} tokens, {:.3f} s", known ? record.method : "-",
                 known ? record.path : "(unknown path)", record.status,
                 record.gone ? " (client left)" : "", record.prompt_tokens, record.output_tokens,
                 seconds);
    if (options_.log_text && !record.text.empty()) spdlog::info("{}", record.text);
  }

  const ServerOptions& options_;
  Metrics& metrics_;
  std::map<std::string, std::map<std::string, Route>> routes_;
  int port_ = -1;
  std::thread listener_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool draining_ = false;
  int threads_ = 0;
  std::map<Connection*, bool> open_;  // true: between requests
};

HttpServer::HttpServer(const ServerOptions& options, Metrics& metrics)
    : impl_(std::make_unique<Impl>(options, metrics)) {}

HttpServer::~HttpServer() {
  impl_->end();
}

void HttpServer::route(const std::string& method, const std::string& path, Handler handler,
                       bool open) {
  impl_->add(method, path, std::move(handler), open);
}

void HttpServer::start() {
  impl_->begin();
}

int HttpServer::port() const {
  return impl_->bound_port();
}

int HttpServer::connections() const {
  return impl_->connections();
}

bool HttpServer::drain(std::chrono::milliseconds limit) {
  return impl_->drain(limit);
}

void HttpServer::stop() {
  impl_->end();
}

}  // namespace cupel
