#include "server/served.h"

#include <chrono>
#include <functional>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupel/eval/server_sent_events.h"

namespace cupel::test {
namespace {

using nlohmann::json;

std::unique_ptr<Engine> new_engine() {
  return std::make_unique<Engine>(
      EngineOptions{.model = bundled_model(), .network = {}, .threads = 2});
}

constexpr int kPatience = 20;  // seconds

}  // namespace

Engine& served_engine() {
  static const std::unique_ptr<Engine> engine = new_engine();
  return *engine;
}

Engine& expecting_engine() {
  static const std::unique_ptr<Engine> engine = new_engine();
  return *engine;
}

ServerOptions quiet_options() {
  ServerOptions options;
  options.port = 0;
  options.names = {"tiny"};
  options.model = bundled_model();
  options.log_requests = false;
  return options;
}

std::vector<Generation> expected(const std::vector<GenerationRequest>& requests) {
  std::vector<Generation> results(requests.size());
  expecting_engine().generate(requests, 1,
                              [&](std::size_t i, const Generation& g) { results[i] = g; });
  return results;
}

Generation expected(const GenerationRequest& request) {
  return expected(std::vector<GenerationRequest>{request}).front();
}

httplib::Client Served::client() const {
  httplib::Client client("127.0.0.1", server_.port());
  client.set_read_timeout(kPatience * 3);
  return client;
}

json Served::get(const std::string& path) const {
  const auto reply = client().Get(path.c_str());
  EXPECT_TRUE(reply) << path;
  if (!reply) return {};
  EXPECT_EQ(reply->status, 200) << path << ": " << reply->body;
  return json::parse(reply->body, nullptr, false);
}

std::string Served::post_text(const std::string& path, const std::string& body, int status) const {
  const auto reply = client().Post(path.c_str(), body, "application/json");
  EXPECT_TRUE(reply) << path;
  if (!reply) return {};
  EXPECT_EQ(reply->status, status) << path << ": " << reply->body;
  return reply->body;
}

json Served::post(const std::string& path, const json& body, int status) const {
  const std::string text = post_text(path, body.dump(), status);
  json parsed = json::parse(text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  return parsed;
}

std::vector<json> Served::stream(const std::string& path, json body) const {
  body["stream"] = true;
  std::vector<std::string> data;
  ServerSentEvents events([&](const std::string& event) { data.push_back(event); });
  events.feed(post_text(path, body.dump()));
  EXPECT_FALSE(data.empty());
  if (data.empty()) return {};
  EXPECT_EQ(data.back(), "[DONE]");
  data.pop_back();
  std::vector<json> parsed;
  for (const std::string& event : data) parsed.push_back(json::parse(event));
  return parsed;
}

double Served::metric(const std::string& name) const {
  const auto reply = client().Get("/metrics");
  EXPECT_TRUE(reply);
  std::istringstream lines(reply ? reply->body : "");
  double sum = 0;
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string label = line.substr(0, line.find_first_of("{ "));
    if (label != name) continue;
    found = true;
    sum += std::stod(line.substr(line.rfind(' ')));
  }
  EXPECT_TRUE(found) << name;
  return sum;
}

RawConnection::RawConnection(int port, int receive_buffer)
    : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

RawConnection::~RawConnection() {
  if (socket_ >= 0) ::close(socket_);
}

bool RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string RawConnection::receive() {
  std::string all;
  char buffer[4096];
  for (;;) {
    pollfd poll{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, kPatience * 1000) <= 0) return all + "<still open>";
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(count));
  }
}

void RawConnection::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(socket_);
  socket_ = -1;
}

std::string raw_post(const std::string& path, const std::string& body, const std::string& headers) {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience);
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace cupel::test
