// Ending a run of many requests.
#include "cupel/eval/http_crew.h"

#include <future>
#include <thread>

#include "support/fake_server.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel::test {
namespace {

// A request that sets out after the run was stopped finds no connection to break off then: it must
// not wait for its answer all the same.
TEST(HttpCrew, StopMeetsARequestThatIsAboutToSetOut) {
  std::promise<void> answer;
  const std::shared_future<void> may_answer = answer.get_future().share();
  FakeServer server([&](const FakeRequest&) {
    may_answer.wait();
    return FakeReply();
  });
  const HttpSettings settings = checked_settings(server.url(), "", 60);

  std::promise<void> asked, stopped;
  std::shared_future<void> go = stopped.get_future().share();
  FailureKind kind = FailureKind::kServer;
  HttpCrew crew(settings, {.retries = 3, .backoff_seconds = 60},
                [&](HttpConnection& connection, std::size_t) -> Completion {
                  asked.set_value();
                  go.wait();
                  try {
                    connection.post("/generate", "{}");
                  } catch (const TransientError& error) {
                    kind = error.kind();
                    throw;
                  }
                  return {};
                });
  std::jthread stopper([&] {
    asked.get_future().wait();
    crew.stop();
    stopped.set_value();
  });
  int failed = 0;
  crew.run(1, 1, [&](std::size_t, const Completion& completion) {
    failed += completion.stop_reason == StopReason::kError ? 1 : 0;
  });
  EXPECT_EQ(failed, 1);
  EXPECT_NE(kind, FailureKind::kTimeout);
  EXPECT_NE(kind, FailureKind::kServer);
  answer.set_value();
}

}  // namespace
}  // namespace cupel::test
