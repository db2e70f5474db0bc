// Resident memory of a run over files larger than what it may take.
#include <fstream>

#include "cli/cupel_program.h"
#include "support/made_checkpoint.h"
#include "support/temporary_folder.h"
#include <sys/resource.h>

namespace cupel {
namespace {

using test::CheckpointMaker;
using test::CommandResult;
using test::Content;
using test::cupel_program;
using test::TemporaryFolder;
using testing::HasSubstr;

// Files of 2.3 GB each (holes: no disk is used), one gigabyte of it in one tensor that differs.
// Pages of maps count as resident memory.
TEST(PreflightCommand, MemoryDoesNotGrowWithTheFiles) {
  const TemporaryFolder before;
  const TemporaryFolder after;
  const std::string config =
      test::cut_config(CUPEL_SOURCE_DIR "/data/v4-flash/config.preview.json", 3, 8, 129280);
  for (const TemporaryFolder* folder : {&before, &after}) {
    EXPECT_GT(CheckpointMaker(folder->path(), config, 0, Content::kHoles).bytes(), 2'200'000'000U);
  }
  const auto shard = after.path() / "model-00001.safetensors";
  std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(1'000'000'000)
      .write("\x3f\x3f", 2);
  const CommandResult result =
      cupel_program({"preflight", before.path(), after.path(), "--no-numerics"});
  EXPECT_EQ(result.exit_code, 2) << result.err << result.out.substr(0, 1000);
  EXPECT_THAT(result.out, HasSubstr("embed.weight"));
  rusage children{};
  ASSERT_EQ(::getrusage(RUSAGE_CHILDREN, &children), 0);
  EXPECT_LT(children.ru_maxrss, 512 << 10) << "KiB";
  RecordProperty("peak_mib", std::to_string(children.ru_maxrss >> 10));
}

}  // namespace
}  // namespace cupel
