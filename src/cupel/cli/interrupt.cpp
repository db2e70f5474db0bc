#include "cupel/cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace cupel {
namespace {

std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int) {
  requested = true;
}

}  // namespace

void watch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool interrupt_requested() {
  return requested;
}

}  // namespace cupel
