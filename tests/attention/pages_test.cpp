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

TEST(PageTable, ForkSharesFullPagesAndCopiesThePartUsedOne) {
  PagePool pool(8);
  PageTable from;
  from.reserve(pool, 10, 4);
  for (const int page : from.pages()) std::memset(pool.page(page), page + 1, 8);
  PageTable to;
  to.fork_from(pool, from, 6, 4);  // entries 8 and 9 are not wanted
  EXPECT_EQ(to.pages().size(), 2u);
  EXPECT_EQ(to.pages()[0], from.pages()[0]);
  EXPECT_NE(to.pages()[1], from.pages()[1]);
  EXPECT_EQ(std::memcmp(pool.page(to.pages()[1]), pool.page(from.pages()[1]), 8), 0);
  EXPECT_EQ(pool.owners(from.pages()[0]), 2);
  EXPECT_EQ(pool.pages_in_use(), 4u);

  std::vector<int> counted;
  from.count_owners(counted);
  EXPECT_FALSE(pool.owners_agree(counted));
  to.count_owners(counted);
  EXPECT_TRUE(pool.owners_agree(counted));

  from.release(pool);
  EXPECT_EQ(pool.pages_in_use(), 2u);
  EXPECT_EQ(*pool.page(to.pages()[0]), std::byte{1});  // the last owner keeps it
  to.release(pool);
  EXPECT_EQ(pool.pages_in_use(), 0u);
}

// Random histories of tables that grow, fork and go.
RC_GTEST_PROP(PageTable, OwnersAreCountedInAnyHistory, ()) {
  constexpr std::size_t kPerPage = 3;
  PagePool pool(16);
  struct Held {
    PageTable table;
    std::size_t count = 0;
  };
  std::vector<Held> held;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000))) {
    const auto pick = [&] { return static_cast<std::size_t>(step) % held.size(); };
    if (held.empty() || step % 4 == 0) {
      held.emplace_back();
    } else if (step % 4 == 1) {
      Held& h = held[pick()];
      h.count += static_cast<std::size_t>(step) % 7;
      h.table.reserve(pool, h.count, kPerPage);
    } else if (step % 4 == 2) {
      Held fork;
      const Held& from = held[pick()];
      fork.count = from.count;
      fork.table.fork_from(pool, from.table, from.count, kPerPage);
      held.push_back(std::move(fork));
    } else {
      held[pick()].table.release(pool);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(pick()));
    }
    std::vector<int> counted;
    for (const Held& h : held) h.table.count_owners(counted);
    RC_ASSERT(pool.owners_agree(counted));
  }
  for (Held& h : held) h.table.release(pool);
  RC_ASSERT(pool.pages_in_use() == 0u);
}

}  // namespace
}  // namespace cupel
