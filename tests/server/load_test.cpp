// Everything at once, as SGLang's evaluation asks; then streams whose clients leave at random. What
// the server counts is what its clients count, and memory stays flat.
#include <atomic>
#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "server/served.h"
#include <fmt/core.h>
#include <unistd.h>

namespace cupel::test {
namespace {

using nlohmann::json;

double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

TEST(Load, AWholeEvaluationAtOnce) {
  const Served server;
  constexpr int kRequests = 1319;
  std::atomic<int> good = 0;
  std::atomic<std::size_t> tokens = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < kRequests; ++i) {
    clients.emplace_back([&, i] {
      const json reply = server.post(
          "/generate", {{"text", "Ivy has " + std::to_string(i)},
                        {"sampling_params", {{"temperature", 0}, {"max_new_tokens", 2}}}});
      if (!reply.contains("output_ids")) return;
      tokens += reply["output_ids"].size();
      ++good;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, kRequests);
  EXPECT_EQ(server.metric("sglang:num_requests_total"), kRequests);
  EXPECT_EQ(server.metric("sglang:generation_tokens_total"), static_cast<double>(tokens));
  EXPECT_EQ(server.metric("sglang:num_running_reqs"), 0);
}

TEST(Load, StreamsWhoseClientsLeave) {
  Served server;
  std::atomic<bool> end = false;
  std::atomic<int> whole = 0, left = 0;
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < CUPEL_LOAD_CLIENTS; ++i) {
    clients.emplace_back([&, i] {
      std::mt19937 random(i);
      while (!end) {
        const json body = {{"prompt", "Ivy has " + std::to_string(random() % 100)},
                           {"stream", true},
                           {"ignore_eos", true},
                           {"max_tokens", 8 + random() % 24}};
        if (random() % 3 == 0) {
          RawConnection connection(server->port());
          connection.send(raw_post("/v1/completions", body.dump()));
          if (random() % 2 == 0) connection.reset();
          ++left;
        } else {
          if (server.stream("/v1/completions", body).size() > 0) ++whole;
        }
      }
    });
  }
  // Caches and arenas have their size after a while.
  const auto time = std::chrono::duration<double>(CUPEL_LOAD_SECONDS);
  std::this_thread::sleep_for(time / 3);
  const double before = resident_megabytes();
  std::this_thread::sleep_for(time * 2 / 3);
  const double after = resident_megabytes();
  end = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(eventually([&] { return server.metric("sglang:num_running_reqs") == 0; }));
  EXPECT_TRUE(eventually([&] { return server.metric("cupel:connections") <= 1; }));
  // A client that left may have had its answer before the server saw it go, or no request yet.
  const double ended = server.metric("sglang:num_requests_total");
  const double aborted = server.metric("sglang:num_aborted_requests_total");
  EXPECT_GE(ended, static_cast<double>(whole));
  EXPECT_LE(ended + aborted, static_cast<double>(whole + left));
  // Of seconds it would tell nothing.
  if (CUPEL_LOAD_SECONDS >= 60) {
    EXPECT_LT(after, before * 1.1 + 20);
  }
  fmt::print(
      "{} clients, {} s: {} answers read, {} clients left; {:.0f} MB resident after a third, "
      "{:.0f} MB after\n",
      CUPEL_LOAD_CLIENTS, CUPEL_LOAD_SECONDS, whole.load(), left.load(), before, after);
}

}  // namespace
}  // namespace cupel::test
