#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cupel/attention/free_list.h"
#include "cupel/attention/page_pool.h"

namespace cupel {
namespace {

using testing::ElementsAre;

TEST(FreeList, HandsOutTheLowestNumberFirst) {
  FreeList list;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(list.take(), i);
  for (const int number : {2, 0, 3}) list.give_back(number);
  EXPECT_EQ(list.in_use(), 1u);
  EXPECT_EQ(list.take(), 0);
  EXPECT_EQ(list.take(), 2);
  EXPECT_EQ(list.take(), 3);
  EXPECT_EQ(list.take(), 4);
  EXPECT_EQ(list.limit(), 5);
  EXPECT_EQ(list.in_use(), 5u);
}

RC_GTEST_PROP(FreeList, TakesTheLowestFreeNumberInAnyHistory, ()) {
  FreeList list;
  std::set<int> used;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100))) {
    if (step < 60 || used.empty()) {
      int lowest = 0;
      while (used.contains(lowest)) ++lowest;
      RC_ASSERT(list.take() == lowest);
      used.insert(lowest);
    } else {
      const auto at = std::next(used.begin(), step % static_cast<int>(used.size()));
      list.give_back(*at);
      used.erase(at);
    }
    RC_ASSERT(list.in_use() == used.size());
  }
}

// More pages than a slab holds; each keeps its own bytes at an address that never moves.
TEST(PagePool, PagesAreApartAndStay) {
  constexpr std::size_t kBytes = 1 << 20, kPages = 11;
  PagePool pool(kBytes);
  EXPECT_EQ(pool.page_bytes(), kBytes);
  std::vector<std::byte*> pages;
  for (std::size_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(pool.allocate(), static_cast<int>(i));
    pages.push_back(pool.page(static_cast<int>(i)));
    std::memset(pages[i], static_cast<int>(i + 1), kBytes);
  }
  EXPECT_EQ(pool.pages_in_use(), kPages);
  for (std::size_t i = 0; i < kPages; ++i) {
    const int index = static_cast<int>(i);
    EXPECT_EQ(pool.page(index), pages[i]);
    EXPECT_TRUE(std::all_of(pages[i], pages[i] + kBytes,
                            [&](std::byte b) { return std::to_integer<std::size_t>(b) == i + 1; }));
  }
  pool.release(4);
  pool.release(2);
  EXPECT_EQ(pool.pages_in_use(), kPages - 2);
  EXPECT_EQ(pool.allocate(), 2);
  EXPECT_EQ(pool.allocate(), 4);
  EXPECT_EQ(pool.allocate(), 11);
}

TEST(PagePool, HoldsAPageLargerThanASlab) {
  constexpr std::size_t kBytes = (std::size_t{4} << 20) + 64;
  PagePool pool(kBytes);
  for (int i = 0; i < 2; ++i) std::memset(pool.page(pool.allocate()), i + 1, kBytes);
  EXPECT_EQ(pool.page(0)[kBytes - 1], std::byte{1});
  EXPECT_EQ(pool.page(1)[0], std::byte{2});
}

TEST(PageTable, GrowsOnDemandAndReleases) {
  PagePool pool(64);
  PageTable a, b;
  a.reserve(pool, 0, 4);
  EXPECT_THAT(a.pages(), ElementsAre());
  a.reserve(pool, 1, 4);
  b.reserve(pool, 4, 4);
  a.reserve(pool, 5, 4);
  a.reserve(pool, 3, 4);  // never shrinks
  EXPECT_THAT(a.pages(), ElementsAre(0, 2));
  EXPECT_THAT(b.pages(), ElementsAre(1));
  EXPECT_EQ(a.page_of(3, 4), 0);
  EXPECT_EQ(a.page_of(4, 4), 2);
  a.release(pool);
  EXPECT_EQ(pool.pages_in_use(), 1u);
  b.reserve(pool, 9, 4);
  EXPECT_THAT(b.pages(), ElementsAre(1, 0, 2));
}

TEST(PageTable, CopyHasPagesOfItsOwn) {
  PagePool pool(8);
  PageTable from;
  from.reserve(pool, 3, 1);
  for (const int page : from.pages()) std::memset(pool.page(page), page + 1, 8);
  for (const std::size_t before : {0, 2, 5}) {
    PageTable to;
    to.reserve(pool, before, 1);
    to.copy_from(pool, from);
    ASSERT_EQ(to.pages().size(), 3u);
    EXPECT_EQ(pool.pages_in_use(), 6u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NE(to.pages()[i], from.pages()[i]);
      EXPECT_EQ(std::memcmp(pool.page(to.pages()[i]), pool.page(from.pages()[i]), 8), 0);
    }
    to.release(pool);
  }
  EXPECT_EQ(pool.pages_in_use(), 3u);
}

}  // namespace
}  // namespace cupel
