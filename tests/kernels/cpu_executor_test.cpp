// Memory of the processor's executor.
#include "cupel/kernels/cpu/cpu_executor.h"

#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cupel/kernels/device_array.h"

namespace cupel::test {
namespace {

double resident_mebibytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Large arrays of ever smaller sizes, each followed by a small one that stays: in a heap, which
// takes such sizes once one was freed, the room of the large ones would stay as well.
TEST(CpuExecutor, LargeArraysLeaveNothingBehind) {
  CpuExecutor executor(1);
  std::vector<DeviceArray<char>> kept;
  const double before = resident_mebibytes();
  for (std::size_t i = 0; i < 24; ++i) {
    const std::size_t size = (32 - i) * (std::size_t{1} << 20);
    DeviceArray<char> large(executor, size);
    std::memset(large.data(), 1, size);
    kept.emplace_back(executor, 4096);
  }
  EXPECT_LT(resident_mebibytes(), before + 8);
}

}  // namespace
}  // namespace cupel::test
