#include "cupel/server/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cupel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLinger(2000);

thread_local Connection* current_connection = nullptr;

// The events that came by the deadline; 0: none.
short wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd poll{.fd = socket, .events = events, .revents = 0};
    const int count = ::poll(&poll, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (count > 0) return poll.revents;
    if (count == 0 || errno != EINTR) return 0;
  }
}

void numeric_name(const sockaddr_storage& address, socklen_t length, std::string& ip, int& port) {
  char host[NI_MAXHOST] = {}, service[NI_MAXSERV] = {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, service,
                    sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
    ip = host;
    port = std::atoi(service);
  }
}

}  // namespace

Connection::Connection(socket_t socket, const ServerLimits& limits)
    : socket_(socket), limits_(limits) {
  current_connection = this;
}

Connection::~Connection() {
  current_connection = nullptr;
  ::shutdown(socket_, SHUT_RDWR);
  ::close(socket_);
}

Connection* Connection::current() {
  return current_connection;
}

bool Connection::wait_for_request() {
  if (begin_ == end_ && !fill(Clock::now() + limits_.idle_time)) return false;
  in_headers_ = true;
  last_[0] = last_[1] = '\0';
  header_bytes_ = 0;
  fault_ = Fault::kNone;
  deadline_ = Clock::now() + limits_.header_time;
  record_ = {.method = {}, .path = {}, .start = Clock::now()};
  return true;
}

bool Connection::fill(Clock::time_point deadline) {
  if (wait_for(socket_, POLLIN, deadline) == 0) {
    fault_ = Fault::kTooSlow;
    return false;
  }
  ssize_t count = 0;
  do {
    count = ::recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {
    fault_ = Fault::kClosed;
    return false;
  }
  begin_ = 0;
  end_ = static_cast<std::size_t>(count);
  return true;
}

void Connection::note_header_byte(char byte) {
  ++header_bytes_;
  if (byte == '\n' && last_[1] == '\r' && last_[0] == '\n') {
    in_headers_ = false;
    deadline_ = Clock::now() + limits_.body_time;
  }
  last_[0] = last_[1];
  last_[1] = byte;
}

ssize_t Connection::read(char* bytes, std::size_t size) {
  if (fault_ != Fault::kNone) return -1;
  if (begin_ == end_ && !fill(deadline_)) return fault_ == Fault::kClosed ? 0 : -1;
  // Byte by byte within the headers, so that their end is not missed.
  const std::size_t count = in_headers_ ? 1 : std::min(size, end_ - begin_);
  if (in_headers_) {
    note_header_byte(buffer_[begin_]);
    if (header_bytes_ > limits_.header_bytes) {
      fault_ = Fault::kHeadersTooLong;
      return -1;
    }
  } else if (Clock::now() > deadline_) {
    fault_ = Fault::kTooSlow;
    return -1;
  }
  std::memcpy(bytes, buffer_ + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* bytes, std::size_t size) {
  for (;;) {
    const ssize_t count = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return count;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!is_writable()) return -1;
  }
}

void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point deadline = Clock::now() + kLinger;
  while (Clock::now() < deadline && fill(deadline)) {
  }
}

bool Connection::is_readable() const {
  return begin_ < end_ || wait_for(socket_, POLLIN, deadline_) != 0;
}

bool Connection::is_writable() const {
  const short events = wait_for(socket_, POLLOUT, Clock::now() + limits_.write_time);
  return (events & POLLOUT) != 0 && (events & (POLLERR | POLLHUP)) == 0;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    numeric_name(address, length, ip, port);
  }
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    numeric_name(address, length, ip, port);
  }
}

}  // namespace cupel
