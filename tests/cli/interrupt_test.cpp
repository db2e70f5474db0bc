// SIGINT in the middle of an evaluation: a clean end, whole records, and a run that goes on.
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "cli/cupel_program.h"
#include "support/temporary_folder.h"

namespace cupel::test {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Interrupt, KeepsTheRecordsAndEndsWithThree) {
  const TemporaryFolder folder;
  const auto records = folder.path() / "records.jsonl";
  const std::vector<std::string> words = {
      "eval",          "wordmath", "--model",   bundled("tiny-v4-0731"), "--limit", "120",
      "--concurrency", "4",        "--records", records.string()};
  std::jthread sender;
  const CommandResult stopped =
      cupel_program(words, {.started = [&](pid_t pid) {
                      sender = std::jthread([&, pid] {
                        while (lines(read_all(records)) < 5) {
                          std::this_thread::sleep_for(std::chrono::milliseconds(5));
                        }
                        ::kill(pid, SIGINT);
                      });
                    }});
  EXPECT_EQ(stopped.exit_code, 3) << stopped.err;
  EXPECT_THAT(stopped.err, testing::HasSubstr("interrupted"));
  const std::string kept = read_all(records);
  ASSERT_FALSE(kept.empty());
  EXPECT_EQ(kept.back(), '\n');
  EXPECT_GE(lines(kept), 5U);
  ASSERT_LT(lines(kept), 120U);

  auto again = words;
  again.emplace_back("--resume");
  const CommandResult done = cupel_program(again);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string all = read_all(records);
  EXPECT_EQ(lines(all), 120U);
}

}  // namespace
}  // namespace cupel::test
