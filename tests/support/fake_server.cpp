#include "support/fake_server.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cupel::test {
namespace {

using nlohmann::json;

constexpr int kAnyPort = -1;

// A thread for each connection: as many requests at a time as clients have.
class ThreadEach : public httplib::TaskQueue {
 public:
  // void, or bool in later versions of the library.
  using Accepted = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

  Accepted enqueue(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(std::move(work));
    return static_cast<Accepted>(true);
  }
  void shutdown() override {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::mutex mutex_;
  std::list<std::thread> threads_;
};

// The library gives no way to end a connection: find its descriptor by the port of one of its ends,
// and shut it.
void end_connections(int own_port, int peer_port) {
  const auto port_of = [](int descriptor, auto call) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (call(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return -1;
    return address.sin_family == AF_INET ? static_cast<int>(ntohs(address.sin_port)) : -1;
  };
  for (int descriptor = 3; descriptor < 8192; ++descriptor) {
    const int peer = port_of(descriptor, ::getpeername);
    if (peer < 0 || port_of(descriptor, ::getsockname) != own_port) continue;
    if (peer_port != kAnyPort && peer != peer_port) continue;
    const linger now{1, 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace

class FakeServer::Impl : public httplib::Server {
 public:
  Impl(Script post, Script get) : post_(std::move(post)), get_(std::move(get)) {
    // Both ends of a thousand connections may be in this process.
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 8192));
    ::setrlimit(RLIMIT_NOFILE, &limit);
    new_task_queue = [] { return new ThreadEach; };
    set_keep_alive_max_count(1'000'000);
    set_keep_alive_timeout(60);
    set_tcp_nodelay(true);
    const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
      handle(request, response);
    };
    Get(".*", handler);
    Post(".*", handler);
    port_ = bind_to_any_port("127.0.0.1");
    if (port_ < 0) throw std::runtime_error("no port");
    // The library's own queue holds five connections that wait.
    ::listen(svr_sock_, 4096);
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
  }
  ~Impl() override { end(); }

  void end() {
    stop();
    // Threads of idle connections would wait for their time limit.
    end_connections(port_, kAnyPort);
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return port_; }
  std::vector<FakeRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void handle(const httplib::Request& request, httplib::Response& response) {
    FakeRequest seen{.method = request.method,
                     .path = request.path,
                     .body = request.body,
                     .json = json::parse(request.body, nullptr, false),
                     .headers = {request.headers.begin(), request.headers.end()},
                     .connection = request.remote_port,
                     .number = 0};
    {
      const std::lock_guard lock(mutex_);
      if (seen.method == "POST") seen.number = posts_++;
      requests_.push_back(seen);
    }
    const FakeReply reply = seen.method == "POST" ? post_(seen) : get_(seen);
    if (reply.reset) {
      end_connections(port_, request.remote_port);
      return;
    }
    response.status = reply.status;
    for (const auto& [name, value] : reply.headers) response.set_header(name, value);
    if (reply.pieces.empty()) {
      response.set_content(reply.body, reply.content_type);
      return;
    }
    response.set_chunked_content_provider(
        "text/event-stream", [reply](std::size_t, httplib::DataSink& sink) {
          for (const std::string& piece : reply.pieces) {
            const std::size_t step = reply.trickle ? 1 : piece.size();
            for (std::size_t at = 0; at < piece.size(); at += step) {
              if (!sink.write(piece.data() + at, step)) return false;
              if (reply.trickle) std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
          }
          if (reply.cut) return false;
          sink.done();
          return true;
        });
  }

  Script post_;
  Script get_;
  int port_ = -1;
  std::thread thread_;
  mutable std::mutex mutex_;
  int posts_ = 0;
  std::vector<FakeRequest> requests_;
};

FakeServer::FakeServer(Script post) : FakeServer(std::move(post), models) {}
FakeServer::FakeServer(Script post, Script get)
    : impl_(std::make_unique<Impl>(std::move(post), std::move(get))) {}
FakeServer::~FakeServer() = default;

std::string FakeServer::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port());
}

void FakeServer::stop() {
  impl_->end();
}

std::vector<FakeRequest> FakeServer::requests() const {
  return impl_->requests();
}

std::vector<FakeRequest> FakeServer::posts() const {
  std::vector<FakeRequest> all = requests();
  std::erase_if(all, [](const FakeRequest& request) { return request.method != "POST"; });
  return all;
}

FakeReply FakeServer::models(const FakeRequest& request) {
  if (request.path != "/v1/models") return {.status = 404, .body = R"({"detail":"Not Found"})"};
  return {.body = R"({"object":"list","data":[{"id":"fake","object":"model"}]})"};
}

std::string completions_reply(const std::string& text, const std::string& reason) {
  return json{{"object", "text_completion"},
              {"choices", json::array({{{"index", 0}, {"text", text}, {"finish_reason", reason}}})},
              {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 3}}}}
      .dump();
}

std::string chat_reply(const std::string& text, const std::string& reason) {
  return json{{"object", "chat.completion"},
              {"choices", json::array({{{"index", 0},
                                        {"message", {{"role", "assistant"}, {"content", text}}},
                                        {"finish_reason", reason}}})},
              {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 3}}}}
      .dump();
}

std::string generate_reply(const std::string& text, const std::string& reason) {
  return json{{"text", text},
              {"meta_info",
               {{"finish_reason", {{"type", reason}}},
                {"prompt_tokens", 11},
                {"completion_tokens", 3},
                {"cached_tokens", 8}}}}
      .dump();
}

std::vector<std::string> events(const std::vector<json>& parts, bool end) {
  std::vector<std::string> all;
  for (const json& part : parts) all.push_back("data: " + part.dump() + "\n\n");
  if (end) all.emplace_back("data: [DONE]\n\n");
  return all;
}

}  // namespace cupel::test
