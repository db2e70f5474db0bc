#include "cupel/base/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace cupel {
namespace {

TEST(ThreadPool, RunsEveryUnitOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::size_t units : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(units);
      pool.parallel_for(units, [&](std::size_t unit, int thread) {
        EXPECT_LT(thread, threads);
        ++calls[unit];
      });
      for (const auto& n : calls) EXPECT_EQ(n.load(), 1);
    }
  }
}

TEST(ThreadPool, RethrowsTheLowestUnitAndStaysUsable) {
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    try {
      pool.parallel_for(64, [](std::size_t unit, int) {
        if (unit >= 10) throw std::out_of_range(std::to_string(unit));
      });
      FAIL() << "no exception";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "10");
    }
  }
}

}  // namespace
}  // namespace cupel
