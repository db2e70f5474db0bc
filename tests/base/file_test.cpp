#include "cupel/base/file.h"

#include <fstream>

#include "support/temporary_folder.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "out";
  {
    AtomicFile file(path);
    file.write("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  AtomicFile file(path);
  file.write("whole");
  file.commit();
  EXPECT_EQ(read_file(path), "whole");
}

TEST(AtomicFile, NamesTheMissingFolder) {
  const test::TemporaryFolder folder;
  try {
    AtomicFile file(folder.path() / "none" / "out");
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("none/out"), std::string::npos);
  }
}

TEST(LineWriter, AppendingCutsAnUnfinishedLine) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  std::ofstream(path) << "one\ntwo\nthr";
  LineWriter writer(path, true);
  writer.write_line("three");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
}

TEST(LineWriter, FullDiskIsInfrastructure) {
  LineWriter writer("/dev/full", true);
  try {
    writer.write_line("x");
    FAIL() << "no exception";
  } catch (const InfrastructureError& error) {
    EXPECT_EQ(error.code(), ExitCode::kInfrastructure);
  }
}

TEST(MappedFile, RefusesFoldersAndMissingFiles) {
  EXPECT_THROW(MappedFile("/"), InputError);
  EXPECT_THROW(MappedFile("/nonexistent/file"), InputError);
}

}  // namespace
}  // namespace cupel
