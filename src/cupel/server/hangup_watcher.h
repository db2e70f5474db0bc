// Tells when a client goes away while its request is computed and nothing is written to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace cupel {

class HangupWatcher {
 public:
  HangupWatcher();
  ~HangupWatcher();
  HangupWatcher(const HangupWatcher&) = delete;
  HangupWatcher& operator=(const HangupWatcher&) = delete;

  // While it lives the connection is watched.
  class Watch {
   public:
    Watch(HangupWatcher& watcher, std::uint64_t id) : watcher_(watcher), id_(id) {}
    ~Watch() { watcher_.end(id_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    HangupWatcher& watcher_;
    std::uint64_t id_;
  };

  // Calls `gone` once, from a thread of the watcher, when the peer of `socket` closes its side or
  // the connection breaks. A client that only ends its sending half counts as gone. `gone` must not
  // throw, nor end a watch.
  [[nodiscard]] Watch watch(int socket, std::function<void()> gone);

 private:
  struct Entry {
    int socket;
    std::function<void()> gone;
  };

  void run();
  void end(std::uint64_t id);

  int epoll_ = -1, wake_ = -1;
  std::mutex mutex_;
  std::uint64_t next_ = 1;  // 0 is the wake-up
  std::map<std::uint64_t, Entry> entries_;
  std::thread thread_;
};

}  // namespace cupel
