// A client's connection, with the limits of size and time that the HTTP library does not have.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <httplib.h>

#include "cupel/server/options.h"

namespace cupel {

// What the access log tells of a request.
struct AccessRecord {
  std::string method, path;
  int status = 0;
  std::chrono::steady_clock::time_point start = {};
  std::size_t prompt_tokens = 0, output_tokens = 0;
  bool gone = false;      // the client left before its answer was there
  std::string text = {};  // the body, where it is logged
};

// Used by the thread of the connection.
class Connection final : public httplib::Stream {
 public:
  enum class Fault { kNone, kClosed, kHeadersTooLong, kTooSlow };

  // Owns `socket`.
  Connection(socket_t socket, const ServerLimits& limits);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for the first byte of a request; false if none came in time, or the client left.
  bool wait_for_request();
  // Why reading failed, of the present request.
  Fault fault() const { return fault_; }
  // After an error the rest of the request may still be under way: the client is given time to read
  // the reply before the connection is gone.
  void linger();
  AccessRecord& record() { return record_; }

  // The one that the calling thread serves: the library's handlers do not get it.
  static Connection* current();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* bytes, std::size_t size) override;
  ssize_t write(const char* bytes, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool fill(Clock::time_point deadline);
  void note_header_byte(char byte);

  socket_t socket_;
  const ServerLimits& limits_;
  char buffer_[4096];
  std::size_t begin_ = 0, end_ = 0;  // of what was received and not read
  // Headers end with an empty line.
  bool in_headers_ = true;
  char last_[2] = {};
  std::size_t header_bytes_ = 0;
  Clock::time_point deadline_ = {};
  Fault fault_ = Fault::kNone;
  AccessRecord record_;
};

}  // namespace cupel
