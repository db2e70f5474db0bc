// HTTP: connections, limits, authorisation, routes, access log. Knows nothing of models.
//
// Every connection has a thread of its own; what it does is bounded by ServerLimits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cupel/server/metrics.h"
#include "cupel/server/options.h"

namespace cupel {

struct AccessRecord;

// One request and its reply. Used within the handler's call only, but for what stream() is given.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const std::string& body() const = 0;
  virtual int socket() const = 0;
  virtual AccessRecord& record() = 0;

  virtual void header(const std::string& name, const std::string& value) = 0;
  virtual void reply(int status, const std::string& body,
                     const std::string& type = "application/json") = 0;

  // False if the client is gone.
  using Write = std::function<bool(std::string_view)>;
  // Replies with a stream of server-sent events: `next` is called, after the handler, until it
  // returns false.
  virtual void stream(std::function<bool(const Write&)> next) = 0;
};

class HttpServer {
 public:
  // Exceptions become error replies (as_http_error).
  using Handler = std::function<void(Exchange&)>;

  // Both outlive this.
  HttpServer(const ServerOptions& options, Metrics& metrics);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Before start(). `open`: needs no key.
  void route(const std::string& method, const std::string& path, Handler handler,
             bool open = false);
  // Binds and serves, from threads of its own. Throws InputError for an address that cannot be had.
  void start();
  // The bound one.
  int port() const;
  int connections() const;

  // Takes no further connections and requests; returns true when the running ones have ended, false
  // if that takes longer than `limit`. May be called again.
  bool drain(std::chrono::milliseconds limit);
  // Breaks all connections, and returns when their threads have ended.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cupel
