// `cupel bench` from the command line to the exit code.
#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/cupel_program.h"
#include "load/streams.h"
#include "support/temporary_folder.h"
#include <signal.h>

#include "cupel/base/file.h"

namespace cupel::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

FakeReply tell_vocabulary(const FakeRequest& request) {
  if (request.path != "/server_info") return FakeServer::models(request);
  return {.body = json{{"version", "1.2.3"}, {"vocab_size", 64}}.dump()};
}

// /generate of one prompt or of a list.
FakeReply answer(const FakeRequest& request) {
  if (request.path != "/generate") return stream_answer(request);
  const json& ids = request.json["input_ids"];
  const bool list = ids.at(0).is_array();
  const int tokens = asked_tokens(request.json);
  std::vector<json> parts;
  for (int token = 1; token <= tokens; ++token) {
    for (std::size_t i = 0; i < (list ? ids.size() : 1); ++i) {
      const std::size_t length = list ? ids[i].size() : ids.size();
      parts.push_back(
          generate_event(token, token == tokens, static_cast<int>(length), static_cast<int>(i)));
    }
  }
  return {.pieces = events(parts)};
}

class BenchCommand : public testing::Test {
 protected:
  CommandResult bench(const std::string& which, const FakeServer& server,
                      const std::vector<std::string>& more, CommandOptions options = {}) {
    std::vector<std::string> words = {"bench",      which,    "--endpoint", server.url(),
                                      "--run-name", "monday", "--json",     json_};
    words.insert(words.end(), more.begin(), more.end());
    return cupel_program(words, std::move(options));
  }
  static std::vector<json> lines(const std::string& path) {
    std::vector<json> all;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
  }
  std::vector<json> records(const std::string& kind) const {
    std::vector<json> all = lines(json_);
    std::erase_if(all, [&](const json& record) { return record["kind"] != kind; });
    return all;
  }

  TemporaryFolder folder_;
  std::string json_ = folder_.path() / "bench.jsonl";
};

TEST_F(BenchCommand, OneBatchRunsItsListSoOftenAsAsked) {
  FakeServer server(answer, tell_vocabulary);
  const std::vector<std::string> flags = {"--batch-size", "1,1,3", "--input-len", "8",
                                          "--output-len", "4",     "--repeats",   "2"};
  const CommandResult result = bench("one-batch", server, flags);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(server.url() + " (generate): fake, version=1.2.3"));
  const auto kept = records("one_batch");
  ASSERT_EQ(kept.size(), 6U);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i]["batch_size"], (std::vector{1, 1, 3})[i % 3]);
    EXPECT_EQ(kept[i]["repeat"], i / 3);
    EXPECT_EQ(kept[i]["throw_away"], i % 3 == 0);
    EXPECT_EQ(kept[i]["run_name"], "monday");
    EXPECT_EQ(kept[i]["reason"], "");
    EXPECT_TRUE(kept[i]["latency"].is_number());
  }
  ASSERT_EQ(records("one_batch_summary").size(), 2U);
  // Three warm-ups and six cases, each after a flush.
  const auto posts = server.posts();
  EXPECT_EQ(posts.size(), 18U);
  EXPECT_EQ(posts.front().path, "/flush_cache");

  const CommandResult again = bench("one-batch", server,
                                    {"--batch-size", "2", "--input-len", "8", "--output-len", "4",
                                     "--skip-warmup", "--markdown"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("| batch size | input len | latency (s) |"));
  EXPECT_EQ(server.posts().size(), 20U);
  // What was there stays.
  EXPECT_EQ(records("one_batch").size(), 7U);
}

TEST_F(BenchCommand, ServingShowsAndKeepsEachRepeat) {
  FakeServer server(answer, tell_vocabulary);
  const std::string requests = folder_.path() / "requests.jsonl";
  for (const std::string api : {"generate", "completions", "chat"}) {
    const CommandResult result =
        bench("serving", server,
              {"--api", api, "--num-prompts", "7", "--request-rate", "500", "--input-len", "8",
               "--output-len", "4", "--repeats", "3", "--flush-cache", "--requests", requests});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("Poisson arrivals at 500/s"));
    EXPECT_THAT(result.out, HasSubstr("TTFT"));
    EXPECT_THAT(result.out, HasSubstr(" +- "));
    EXPECT_THAT(result.out, HasSubstr("repeat 2: 7 of 7 completed"));
  }
  EXPECT_EQ(records("serving").size(), 9U);
  EXPECT_EQ(records("serving_summary").size(), 3U);
  EXPECT_EQ(lines(requests).size(), 63U);
  for (const json& record : records("serving")) {
    EXPECT_EQ(record["completed"], 7);
    EXPECT_LE(record["mean_ttft_ms"], record["mean_e2e_latency_ms"]);
  }
}

TEST_F(BenchCommand, FailuresShowInTheExitCode) {
  FakeServer server(
      [](const FakeRequest& request) -> FakeReply {
        if (request.path == "/generate" && request.number % 4 == 3) {
          return {.status = 503, .body = "full"};
        }
        return answer(request);
      },
      tell_vocabulary);
  const CommandResult serving =
      bench("serving", server, {"--num-prompts", "20", "--input-len", "8", "--output-len", "4"});
  EXPECT_EQ(serving.exit_code, 3);
  EXPECT_THAT(serving.out, HasSubstr("failed: 5 status 503"));
  EXPECT_EQ(records("serving").at(0)["failed_by_reason"], (json{{"status 503", 5}}));

  FakeServer full([](const FakeRequest&) { return FakeReply{.status = 503, .body = "full"}; },
                  tell_vocabulary);
  const CommandResult batch = bench("one-batch", full, {"--batch-size", "1", "--skip-warmup"});
  EXPECT_EQ(batch.exit_code, 3);
  EXPECT_THAT(batch.out, HasSubstr("batch 1: status 503"));
  EXPECT_EQ(records("one_batch").at(0)["reason"], "status 503");
  EXPECT_EQ(bench("serving", full, {}).exit_code, 3);
}

TEST_F(BenchCommand, ADeadServerIsNoResult) {
  FakeServer gone(answer, tell_vocabulary);
  gone.stop();
  for (const char* which : {"one-batch", "serving"}) {
    const CommandResult result = bench(which, gone, {});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("no connection"));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(BenchCommand, RefusesBadFlags) {
  FakeServer server(answer);  // which does not tell its vocabulary
  expect_refused(bench("serving", server, {}), {"--vocabulary", "the server does not tell"});
  expect_refused(bench("serving", server, {"--request-rate", "0"}), {"--request-rate"});
  expect_refused(bench("serving", server, {"--range-ratio", "2"}), {"--range-ratio", "2"});
  expect_refused(bench("serving", server, {"--api", "smoke"}), {"--api", "smoke"});
  expect_refused(bench("serving", server, {"--served-model", "other"}), {"other"});
  expect_refused(bench("one-batch", server, {"--api", "chat", "--vocabulary", "9"}), {"chat"});
  expect_refused(bench("one-batch", server, {"--batch-size", "0"}), {"--batch-size"});
  expect_refused(cupel_program({"bench"}), {"subcommand"});
  expect_refused(cupel_program({"bench", "serving"}), {"--endpoint"});
  EXPECT_TRUE(server.posts().empty());
  // What the server refuses is a mistake of the caller.
  FakeServer strict([](const FakeRequest&) { return FakeReply{.status = 400, .body = "no"}; });
  expect_refused(bench("serving", strict, {"--vocabulary", "9"}), {"warm-up", "status 400"});
}

TEST_F(BenchCommand, SigintKeepsWhatWasMeasured) {
  FakeServer server(answer, tell_vocabulary);
  const std::string requests = folder_.path() / "requests.jsonl";
  std::jthread sender;
  const CommandResult result =
      bench("serving", server,
            {"--num-prompts", "1000", "--request-rate", "20", "--input-len", "8", "--output-len",
             "4", "--requests", requests},
            {.started = [&](pid_t pid) {
              sender = std::jthread([&, pid] {
                while (server.posts().size() < 8) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(5));
                }
                ::kill(pid, SIGINT);
              });
            }});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.out, HasSubstr("not sent"));
  const auto kept = records("serving");
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0]["interrupted"], true);
  EXPECT_GE(kept[0]["completed"], 5);
  EXPECT_TRUE(kept[0]["mean_ttft_ms"].is_number());
  EXPECT_EQ(lines(requests).size(), 1000U);
}

}  // namespace
}  // namespace cupel::test
