#include "cupel/server/hangup_watcher.h"

#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cupel/base/error.h"

namespace cupel {

HangupWatcher::HangupWatcher()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC)) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ < 0 || wake_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) {
    throw InfrastructureError("server", std::strerror(errno));
  }
  thread_ = std::thread([this] { run(); });
}

HangupWatcher::~HangupWatcher() {
  const std::uint64_t one = 1;
  while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(wake_);
  ::close(epoll_);
}

HangupWatcher::Watch HangupWatcher::watch(int socket, std::function<void()> gone) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t id = next_++;
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;  // broken connections are reported without asking
  event.data.u64 = id;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) == 0) {
    entries_[id] = {socket, std::move(gone)};
  }
  return {*this, id};
}

void HangupWatcher::end(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.socket, nullptr);
  entries_.erase(found);
}

void HangupWatcher::run() {
  for (;;) {
    epoll_event event{};
    const int count = ::epoll_wait(epoll_, &event, 1, -1);
    if (count < 0 && errno != EINTR) return;
    if (count < 1) continue;
    if (event.data.u64 == 0) return;
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(event.data.u64);
    if (found != entries_.end()) found->second.gone();
  }
}

}  // namespace cupel
