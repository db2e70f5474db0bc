#include "cupel/engine/prefix_cache.h"

#include <set>

#include "engine/fake_store.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace cupel {
namespace {

using Tokens = std::vector<std::int32_t>;
using test::FakeStore;

void keep(PrefixCache& cache, FakeStore& store, const Tokens& tokens) {
  SequenceState state = store.open();
  store.advance(state, tokens.size());
  cache.insert(tokens, std::move(state));
}

TEST(PrefixCache, FindsTheLongestKeptState) {
  FakeStore store;
  PrefixCache cache(store);
  EXPECT_EQ(cache.find(Tokens{1, 2, 3}).common, 0U);
  keep(cache, store, {1, 2, 3, 4, 5, 6});
  keep(cache, store, {1, 2, 3});
  keep(cache, store, {1, 2, 9, 9});
  const auto length = [&](const Tokens& tokens) { return cache.find(tokens).length(); };
  EXPECT_EQ(length({1, 2, 3, 4, 5, 6, 7}), 6U);
  EXPECT_EQ(length({1, 2, 3, 4, 5, 6}), 6U);
  EXPECT_EQ(length({1, 2, 3, 4, 5}), 3U);
  EXPECT_EQ(length({1, 2}), 0U);
  EXPECT_EQ(cache.find(Tokens{1, 2, 3, 4, 8}).common, 4U);  // where someone else went on
  EXPECT_EQ(cache.find(Tokens{1, 2, 9, 8}).common, 3U);
  EXPECT_EQ(cache.find(Tokens{1, 2, 9, 8}).state, nullptr);
}

TEST(PrefixCache, GivesUpWhatWasUsedLongestAgo) {
  FakeStore store;
  PrefixCache cache(store);
  keep(cache, store, {1, 1});
  keep(cache, store, {2, 2});
  keep(cache, store, {3, 3});
  EXPECT_EQ(cache.find(Tokens{1, 1, 5}).length(), 2U);
  keep(cache, store, {2, 2});  // again: the second state is closed
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_TRUE(cache.evict());
  EXPECT_EQ(cache.find(Tokens{3, 3}).length(), 0U);
  EXPECT_EQ(cache.find(Tokens{1, 1}).length(), 2U);
  EXPECT_EQ(cache.find(Tokens{2, 2}).length(), 2U);
  cache.clear();
  EXPECT_FALSE(cache.evict());
  EXPECT_EQ(store.cache_bytes(), 0U);
}

// Against a plain set of token lists, in any history.
RC_GTEST_PROP(PrefixCache, AgreesWithASet, ()) {
  FakeStore store;
  PrefixCache cache(store);
  std::set<Tokens> kept;
  const auto tokens =
      rc::gen::resize(8, rc::gen::container<Tokens>(rc::gen::inRange<std::int32_t>(0, 3)));
  for (int step = 0; step < 40; ++step) {
    Tokens t = *tokens;
    t.push_back(*rc::gen::inRange<std::int32_t>(0, 3));
    const int action = *rc::gen::inRange(0, 10);
    if (action < 5) {
      keep(cache, store, t);
      kept.insert(t);
    } else if (action == 5) {
      const std::size_t before = cache.size();
      RC_ASSERT(cache.evict() == (before > 0));
      // Which one it was shows in what is found no more.
      std::erase_if(kept, [&](const Tokens& k) { return cache.find(k).length() != k.size(); });
      RC_ASSERT(kept.size() == cache.size());
    }
    std::size_t longest = 0, common = 0;
    for (const Tokens& k : kept) {
      const auto same = static_cast<std::size_t>(
          std::mismatch(k.begin(), k.end(), t.begin(), t.end()).first - k.begin());
      common = std::max(common, same);
      if (same == k.size()) longest = std::max(longest, same);
    }
    const PrefixCache::Match match = cache.find(t);
    RC_ASSERT(match.length() == longest);
    RC_ASSERT(match.common == common);
  }
}

}  // namespace
}  // namespace cupel
