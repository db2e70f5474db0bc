// Evaluations and assays of servers, from the command line to the exit code.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "cli/endpoint_command.h"
#include "support/fake_server.h"
#include "support/temporary_folder.h"
#include <nlohmann/json.hpp>
#include <signal.h>

#include "cupel/base/file.h"
#include "cupel/eval/record.h"
#include "cupel/eval/task.h"

namespace cupel {
namespace {

using nlohmann::json;
using namespace test;  // NOLINT(google-build-using-namespace): the fixture and its servers
using testing::HasSubstr;

TEST_F(EndpointCommand, RecordsSayWhatWasAsked) {
  write_task(5);
  FakeServer server(answer_right);
  const CommandResult result =
      eval({"--endpoint", server.url() + "/v1", "--launch-id", "monday", "--stop", "Q"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("sums: 5 items, 1 shots"));
  EXPECT_THAT(result.out, HasSubstr("\nfake/completions "));
  const auto records = read_records(records_);
  ASSERT_EQ(records.size(), 5U);
  for (const Record& r : records) {
    EXPECT_TRUE(r.correct && r.correct_strict);
    EXPECT_EQ(r.identity.cell, "fake/completions");
    EXPECT_EQ(r.identity.model, "served=fake");
    EXPECT_EQ(r.identity.settings,
              R"(api=completions shots=1 bos=1 max_new_tokens=512 temperature=0 stop=["Q"])");
    EXPECT_EQ(r.launch, "monday");
    EXPECT_EQ(r.retries, 0);
    EXPECT_EQ(r.stop_reason, StopReason::kStopString);
  }
  // One token first, then the items.
  const auto posts = server.posts();
  ASSERT_EQ(posts.size(), 6U);
  EXPECT_EQ(posts[0].json["max_tokens"], 1);
  for (std::size_t i = 1; i < posts.size(); ++i) {
    EXPECT_THAT(posts[i].json["prompt"].get<std::string>(),
                testing::StartsWith(std::string(kBosText) + "Question: 0 + 1\nAnswer: #### 1\n\n"));
    EXPECT_EQ(posts[i].json["max_tokens"], 512);
    EXPECT_EQ(posts[i].json["stop"], json::array({"Q"}));
    EXPECT_EQ(posts[i].json["temperature"], 0);
  }
}

TEST_F(EndpointCommand, AChatPromptIsOneMessageWithoutBos) {
  write_task(2);
  FakeServer server([](const FakeRequest& request) {
    const std::string prompt = request.json.at("messages").at(0).at("content");
    return FakeReply{.body = test::chat_reply(std::to_string(right_answer(prompt)))};
  });
  const CommandResult result = eval({"--endpoint", server.url(), "--api", "chat"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(server.posts().back().json["messages"][0]["content"].get<std::string>(),
              testing::StartsWith("Question: 0 + 1\n"));
  const auto records = read_records(records_);
  EXPECT_THAT(records[0].identity.settings,
              testing::StartsWith("api=chat prompt=one-user-message shots=1 bos=0 "));
  EXPECT_THAT(records[0].launch, testing::MatchesRegex("[0-9a-f]+"));
}

TEST_F(EndpointCommand, FailuresAreCountedAndSaid) {
  write_task(4);
  FakeServer server([](const FakeRequest& request) {
    return request.number == 2 ? FakeReply{.status = 429} : answer_right(request);
  });
  const CommandResult result = eval({"--endpoint", server.url(), "--concurrency", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("further tries after failures of the server: 1 "));
  const auto records = read_records(records_);
  EXPECT_EQ(records[0].retries, 0);
  EXPECT_EQ(records[1].retries, 1);
}

// A connection that the server has closed must not end the program by a signal.
TEST_F(EndpointCommand, AServerThatIsLostKeepsTheRecordsAndResumingAsksNothingTwice) {
  write_task(6);
  std::atomic<bool> down = true;
  FakeServer server([&](const FakeRequest& request) {
    const bool fails = down && right_answer(request.json.at("prompt")) > 3;
    return fails ? FakeReply{.reset = true} : answer_right(request);
  });
  const Words words = {"--endpoint", server.url(), "--concurrency", "1",
                       "--retries",  "0",          "--resume"};
  const CommandResult lost = eval(words);
  EXPECT_EQ(lost.exit_code, 3) << lost.err;
  EXPECT_EQ(lost.out, "");
  EXPECT_THAT(lost.err, HasSubstr("3 answers are kept in " + records_));
  EXPECT_THAT(lost.err, HasSubstr("the connection was closed or reset"));
  EXPECT_EQ(read_records(records_).size(), 3U);

  down = false;
  const std::size_t before = server.posts().size();
  const CommandResult resumed = eval(words);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(server.posts().size(), before + 1 + 3);
  EXPECT_EQ(read_records(records_).size(), 6U);
}

TEST_F(EndpointCommand, AKilledRunResumesToTheRecordsOfAnUndisturbedOne) {
  constexpr int kItems = 1319;
  write_task(kItems);
  const auto words = [](const FakeServer& server) {
    return Words{"--endpoint", server.url(), "--concurrency", "1319"};
  };
  FakeServer calm(answer_right);
  EXPECT_EQ(eval(words(calm)).exit_code, 0);
  const auto undisturbed = read_records(records_);
  ASSERT_EQ(undisturbed.size(), std::size_t{kItems});

  // Kills the program when half of the requests are there and the first answers on the disk.
  std::filesystem::remove(records_);
  std::atomic<pid_t> victim = 0;
  FakeServer deadly([&](const FakeRequest& request) {
    if (request.number < kItems / 2) return answer_right(request);
    std::error_code ignored;
    while (std::filesystem::file_size(records_, ignored) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (const pid_t pid = victim.exchange(0); pid != 0) ::kill(pid, SIGKILL);
    return FakeReply{.status = 400, .body = "the client is gone"};
  });
  const CommandResult killed = eval(words(deadly), {.started = [&](pid_t pid) { victim = pid; }});
  EXPECT_EQ(killed.exit_code, -SIGKILL) << killed.err;
  const auto kept = read_records(records_, UnfinishedLine::kDrop);
  EXPECT_GT(kept.size(), 0U);
  EXPECT_LE(kept.size(), undisturbed.size() / 2);

  FakeServer again(answer_right);
  Words resuming = words(again);
  resuming.emplace_back("--resume");
  const CommandResult resumed = eval(resuming);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(again.posts().size(), 1 + undisturbed.size() - kept.size());
  const auto records = read_records(records_);
  ASSERT_EQ(records.size(), undisturbed.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(lasting(records[i]), lasting(undisturbed[i]));
  }
}

TEST_F(EndpointCommand, TheKeyIsInNoOutput) {
  constexpr const char* kKey = "sk-sesame";
  write_task(3);
  FakeServer server([&](const FakeRequest& request) {
    const auto header = request.headers.find("Authorization");
    const std::string sent = header == request.headers.end() ? "" : header->second;
    if (sent == std::string("Bearer ") + kKey) return answer_right(request);
    return FakeReply{.status = 401, .body = "wrong: " + sent};
  });
  const Words words = {"--endpoint", server.url(), "--api-key-env", "CUPEL_TEST_KEY"};
  const auto with_key = [&](const std::string& key) {
    return eval(words, {.environment = {{"CUPEL_TEST_KEY", key}}});
  };
  const CommandResult result = with_key(kKey);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out + result.err + read_file(records_), testing::Not(HasSubstr(kKey)));
  const std::string before = read_file(records_);

  const CommandResult wrong = with_key("sk-ali");
  test::expect_refused(wrong, {"status 401", "wrong: Bearer [key]"});
  EXPECT_THAT(wrong.err, testing::Not(HasSubstr("sk-ali")));
  test::expect_refused(eval(words, {.environment = {{"CUPEL_TEST_KEY", std::nullopt}}}),
                       {"--api-key-env", "CUPEL_TEST_KEY"});
  EXPECT_EQ(read_file(records_), before);
}

TEST_F(EndpointCommand, MistakesLeaveTheRecordsAlone) {
  write_task(3);
  test::write_file(records_, "before");
  FakeServer server([](const FakeRequest& request) {
    return request.path == "/v1/completions"
               ? FakeReply{.body = "<html>hello</html>", .content_type = "text/html"}
               : FakeReply{.status = 404, .body = R"({"detail":"Not Found"})"};
  });
  const Words endpoint = {"--endpoint", server.url()};
  const auto refused = [&](Words words, const Words& parts) {
    words.insert(words.begin(), endpoint.begin(), endpoint.end());
    test::expect_refused(eval(words), parts);
    EXPECT_EQ(read_file(records_), "before");
  };
  refused({}, {"/v1/completions", "JSON", "<html>hello"});
  refused({"--api", "generate"}, {"/generate", "status 404", "Not Found"});
  refused({"--api", "words"}, {"--api", "words"});
  refused({"--served-model", "other"}, {"--served-model", "one of fake", "other"});
  refused({"--timeout", "0"}, {"--timeout"});
  refused({"--model", "x"}, {"--endpoint", "--model"});
  refused({"--threads", "2"}, {"--endpoint", "--threads"});
}

TEST_F(EndpointCommand, AnEmptyCompletionIsAWrongAnswer) {
  write_task(3);
  FakeServer server(
      [](const FakeRequest&) { return FakeReply{.body = completions_reply("", "length")}; });
  const CommandResult result = eval({"--endpoint", server.url()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const Record& r : read_records(records_)) {
    EXPECT_TRUE(r.invalid && !r.correct && r.output.empty());
    EXPECT_EQ(r.retries, 0);  // asked once: a wrong answer is no failure
  }
}

TEST_F(EndpointCommand, AStreamCutInTheMiddleIsInfrastructure) {
  write_task(4);
  FakeServer server([](const FakeRequest& request) {
    const std::string prompt = request.json.at("prompt");
    const bool cut = prompt.find("Question: 2") != std::string::npos;
    const auto part = [](const std::string& text, const json& reason) {
      return json{{"choices", json::array({{{"text", text}, {"finish_reason", reason}}})}};
    };
    std::vector<json> parts = {part(" #### ", nullptr)};
    if (!cut) {
      parts.push_back(part(std::to_string(right_answer(prompt)), "stop"));
      parts.push_back({{"choices", json::array()},
                       {"usage", {{"prompt_tokens", 5}, {"completion_tokens", 2}}}});
    }
    return FakeReply{.pieces = events(parts, !cut), .cut = cut};
  });
  const CommandResult result = eval({"--endpoint", server.url(), "--stream", "--retries", "1"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("item 2: "));
  const auto records = read_records(records_);
  EXPECT_EQ(records.size(), 3U);
  for (const Record& r : records) EXPECT_TRUE(r.correct && r.item != 2);
}

TEST_F(EndpointCommand, FetchesGsm8k) {
  const std::string bundled = read_file(CUPEL_SOURCE_DIR "/data/gsm8k/test.jsonl");
  FakeServer server(answer_right, [&](const FakeRequest&) { return FakeReply{.body = bundled}; });
  const std::string file = folder_.path() / "gsm8k.jsonl";
  const Words words = {"fetch", "gsm8k", file, "--url", server.url() + "/test.jsonl"};
  const CommandResult result = cupel_program(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(file), bundled);
  Words other = words;
  other.insert(other.end(), {"--sha256", std::string(64, '0')});
  expect_refused(cupel_program(other), {"SHA-256 is 0000"});
  other.back() = "00";
  expect_refused(cupel_program(other), {"--sha256", "00"});
  expect_refused(cupel_program({"fetch", "mmlu", file}), {"gsm8k", "mmlu"});
}

TEST_F(EndpointCommand, AnUnreachableServerIsInfrastructure) {
  write_task(1);
  std::string url;
  {
    const FakeServer gone(answer_right);
    url = gone.url();
  }
  test::write_file(records_, "before");
  const CommandResult result = eval({"--endpoint", url, "--retries", "0"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr(url + "/v1/models: no connection"));
  EXPECT_EQ(read_file(records_), "before");
}

TEST_F(EndpointCommand, AnAssayOfTwoServers) {
  write_task(40);
  FakeServer good(answer_right), bad(answer_wrong);
  const Words words = {
      "--endpoint", "old=" + good.url(), "--endpoint", "new=" + bad.url(), "--reference",
      "old",        "--margin",          "1"};
  const CommandResult result = assay(words);
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nold "));
  EXPECT_THAT(result.out, HasSubstr("\nnew "));
  EXPECT_THAT(result.out, HasSubstr("REGRESSION"));
  EXPECT_EQ(read_records(folder_.path() / "cells" / "sums.new.jsonl").size(), 40U);
  EXPECT_EQ(read_records(folder_.path() / "cells" / "sums.old.jsonl").size(), 40U);
}

TEST_F(EndpointCommand, AssaysWithoutSenseAreRefusedBeforeAnythingIsAsked) {
  write_task(2);
  FakeServer server(answer_right);
  const std::string a = "a=" + server.url();
  const auto refused = [&](Words words, const Words& parts) {
    words.insert(words.end(), {"--reference", "a", "--margin", "1"});
    test::expect_refused(assay(words), parts);
  };
  refused({"--endpoint", a}, {"at least two"});
  refused({"--endpoint", a, "--endpoint", a}, {"a twice"});
  refused({"--endpoint", a, "--endpoint", server.url()}, {"NAME=URL"});
  refused({"--endpoint", a, "--endpoint", "b=host"}, {"endpoint", "http://"});
  refused({"--endpoint", a, "--model", test::bundled("tiny-v4-0731"), "--api", "chat"}, {"--api"});
  refused({"--endpoint", "b=" + server.url(), "--endpoint", "c=" + server.url()},
          {"--reference", "one of b, c"});
  expect_refused(assay({"--endpoint", a, "--endpoint", "b=" + server.url(), "--reference", "a"}),
                 {"--margin is required"});
  EXPECT_TRUE(server.requests().empty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "cells"));
}

}  // namespace
}  // namespace cupel
