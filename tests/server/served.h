// A server in this process over a bundled checkpoint, and ways to talk to it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "cupel/engine/engine.h"
#include "cupel/server/server.h"

namespace cupel::test {

// The engine of the servers, and another one, alike, for what they should answer.
Engine& served_engine();
Engine& expecting_engine();

inline std::string bundled_model() {
  return CUPEL_SOURCE_DIR "/models/tiny-v4-0731";
}

// On a free port of 127.0.0.1, without an access log.
ServerOptions quiet_options();

// Results of the other engine, one after the other.
std::vector<Generation> expected(const std::vector<GenerationRequest>& requests);
Generation expected(const GenerationRequest& request);

class Served {
 public:
  explicit Served(ServerOptions options = quiet_options())
      : server_(served_engine(), std::move(options)) {}

  Server& operator*() { return server_; }
  Server* operator->() { return &server_; }

  // A client of its own for each call.
  httplib::Client client() const;
  nlohmann::json get(const std::string& path) const;
  // The whole reply; its status must be `status`.
  std::string post_text(const std::string& path, const std::string& body, int status = 200) const;
  nlohmann::json post(const std::string& path, const nlohmann::json& body, int status = 200) const;
  // The data of each event of a stream but the last, "[DONE]", which must be there.
  std::vector<nlohmann::json> stream(const std::string& path, nlohmann::json body) const;
  // A counter or gauge of /metrics, summed over its labels.
  double metric(const std::string& name) const;

 private:
  Server server_;
};

// A plain connection, for what no HTTP client sends.
class RawConnection {
 public:
  // `receive_buffer`: bytes that the system takes while nobody reads; 0: as it likes.
  explicit RawConnection(int port, int receive_buffer = 0);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False once the other side has closed.
  bool send(std::string_view bytes);
  // What comes until the other side closes, or for some seconds at most.
  std::string receive();
  // Breaks the connection off.
  void reset();

 private:
  int socket_;
};

// "POST path HTTP/1.1" with a body.
std::string raw_post(const std::string& path, const std::string& body,
                     const std::string& headers = {});

// Waits for `holds`; false if it does not come true in time.
bool eventually(const std::function<bool()>& holds);

}  // namespace cupel::test
