// repack as a user runs it: interrupted, without space, without permission.
#include <chrono>
#include <thread>

#include "cli/cupel_program.h"
#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"
#include <signal.h>
#include <unistd.h>

namespace cupel {
namespace {

namespace fs = std::filesystem;

using test::bundled;
using test::CommandResult;
using test::cupel_program;
using test::expect_refused;
using test::TemporaryFolder;
using test::TinyCheckpoint;
using testing::HasSubstr;

std::vector<std::string> repack_words(const fs::path& in, const fs::path& out) {
  return {"repack", "--experts", "fp8", in, out};
}

// The same with a shell around it: `before` runs first.
CommandResult in_shell(const std::string& before, const fs::path& in, const fs::path& out,
                       const std::vector<std::string>& unshare = {}) {
  std::string line = before + "; exec " + CUPEL_PROGRAM;
  for (const std::string& word : repack_words(in, out)) line += " '" + word + "'";
  std::vector<std::string> words = unshare;
  words.insert(words.end(), {"/bin/sh", "-c", line});
  return test::run_command(words);
}

void expect_same_files(const fs::path& a, const fs::path& b) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    EXPECT_EQ(read_file(entry.path()), read_file(b / entry.path().filename())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, static_cast<std::size_t>(std::distance(fs::directory_iterator(b), {})));
}

TEST(RepackCommand, WritesAndRefuses) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  const fs::path preview = bundled("tiny-v4-preview");
  auto words = repack_words(preview, out);
  words.insert(words.end(), {"--verify", "--throughput"});
  const CommandResult first = cupel_program(words);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("576 lossless, 0 lossy"));
  EXPECT_THAT(first.err, HasSubstr("ratio"));
  EXPECT_EQ(cupel_program({"inspect", out}).exit_code, 0);
  expect_refused(cupel_program(words), {"nothing is overwritten"});
  expect_refused(cupel_program({"repack", preview, out}), {"--experts"});
  expect_refused(cupel_program(repack_words(preview, "/proc/out")), {"/proc/out"});
}

TEST(RepackCommand, FaultyInputIsRefusedAndLeavesNothing) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  TinyCheckpoint index("tiny-v4-preview");
  fs::remove(index.path() / "model.safetensors.index.json");
  expect_refused(cupel_program(repack_words(index.path(), out)), {"model.safetensors.index.json"});
  TinyCheckpoint half("tiny-v4-preview");
  const std::string shard = "model-00002-of-00003.safetensors";
  half.replace(shard, read_file(fs::path(bundled("tiny-v4-preview")) / shard).substr(0, 3'000'000));
  expect_refused(cupel_program(repack_words(half.path(), out)), {shard});
  expect_refused(cupel_program(repack_words(half.path(), half.path() / "out")), {shard});
  const TinyCheckpoint whole("tiny-v4-preview");
  expect_refused(cupel_program(repack_words(whole.path(), whole.path() / "out")), {"inside it"});
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// A file-size limit: a write fails in the middle of a shard.
TEST(RepackCommand, AFailedWriteLeavesNothingThatLooksComplete) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  const fs::path preview = bundled("tiny-v4-preview");
  const CommandResult full = in_shell("trap '' XFSZ; ulimit -f 4000", preview, out);
  EXPECT_EQ(full.exit_code, 3) << full.err;
  EXPECT_THAT(full.err, HasSubstr("cannot write"));
  EXPECT_FALSE(fs::exists(out));
  const CommandResult again = cupel_program(repack_words(preview, out));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(fs::exists(out));
  EXPECT_FALSE(fs::exists(out.string() + ".partial"));
}

// Small and read-only file systems, mounted in a name space of their own.
class SmallFileSystem : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() == 0) {
      unshare_ = {"/usr/bin/unshare", "-m"};
    } else {
      unshare_ = {"/usr/bin/unshare", "-Urm"};
    }
    std::vector<std::string> words = unshare_;
    words.insert(words.end(), {"/bin/sh", "-c", mount("size=64k")});
    const CommandResult mounted = test::run_command(words);
    ASSERT_EQ(mounted.exit_code, 0)
        << mounted.err << "these tests mount a tmpfs: as root, or in a user name space; where "
        << "neither is allowed leave them out by name: ctest -E SmallFileSystem";
  }
  std::string mount(const std::string& options) const {
    return "mount -t tmpfs -o " + options + " none '" + folder_.path().string() + "'";
  }
  CommandResult repack_on(const std::string& options) const {
    return in_shell(mount(options) + " || exit 99", bundled("tiny-v4-preview"),
                    folder_.path() / "out", unshare_);
  }

  TemporaryFolder folder_;
  std::vector<std::string> unshare_;
};

TEST_F(SmallFileSystem, TooSmallIsSaidBeforeTheWorkBegins) {
  const CommandResult result = repack_on("size=8m");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("20383264 bytes are to be written, the file system has"));
}

// Room for the tensors, not for headers, records and index.
TEST_F(SmallFileSystem, FullInTheMiddle) {
  const CommandResult result = repack_on("size=19928k");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("No space left"));
}

TEST_F(SmallFileSystem, ReadOnly) {
  const CommandResult result = repack_on("ro");
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("Read-only file system"));
}

// Killed at several moments: never a folder under the final name that is not whole; the next run
// ends with the same bytes as one that was not disturbed.
TEST(RepackCommand, KilledRunsLeaveNothingThatLooksCompleteAndGoOn) {
  const TemporaryFolder folder;
  const fs::path preview = bundled("tiny-v4-preview");
  const fs::path fresh = folder.path() / "fresh";
  ASSERT_EQ(cupel_program(repack_words(preview, fresh)).exit_code, 0);
  int killed = 0;
  for (const int shards : {0, 1, 2}) {
    const fs::path out = folder.path() / ("out" + std::to_string(shards));
    const fs::path partial = out.string() + ".partial";
    // Kills once that many shards have their names.
    const auto kill_at = [&](pid_t pid) {
      const auto count = [&] {
        int named = 0;
        std::error_code error;
        for (fs::directory_iterator entry(partial, error), end; !error && entry != end;
             entry.increment(error)) {
          named += entry->path().extension() == ".safetensors";
        }
        return fs::exists(partial) ? named : -1;
      };
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (count() < shards && !fs::exists(out) && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      ::kill(pid, SIGKILL);
    };
    const CommandResult result = cupel_program(repack_words(preview, out), {.started = kill_at});
    if (result.exit_code != -SIGKILL) continue;  // it was faster
    ++killed;
    EXPECT_FALSE(fs::exists(out / "model.safetensors.index.json") && fs::exists(partial));
    if (fs::exists(partial)) {
      EXPECT_EQ(cupel_program({"inspect", partial}).exit_code, 4);
    }
    if (!fs::exists(out)) {
      const CommandResult again = cupel_program(repack_words(preview, out));
      EXPECT_EQ(again.exit_code, 0) << again.err;
    }
    expect_same_files(fresh, out);
  }
  EXPECT_GT(killed, 0);
}

}  // namespace
}  // namespace cupel
