// A store of sequences without a network: pages of 256 tokens, counted.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "cupel/model/sequence_store.h"

namespace cupel::test {

class FakeStore final : public SequenceStore {
 public:
  static constexpr std::size_t kStateBytes = 8, kPageBytes = 4;

  SequenceState open() override {
    SequenceState state;
    state.slot = next_++;
    pages_[state.slot];
    return state;
  }
  void close(SequenceState& state) override {
    EXPECT_EQ(pages_.erase(state.slot), 1U);
    state = {};
  }
  SequenceState fork(const SequenceState& from) override {
    SequenceState state;
    state.length = from.length;
    state.slot = next_++;
    auto& pages = pages_[state.slot];
    pages = pages_.at(from.slot);
    if (from.length % kPageTokens != 0) pages.back() = page();
    return state;
  }
  std::size_t sequence_bytes(std::int64_t length) const override {
    return kStateBytes + kPageBytes * page_count(length);
  }
  std::size_t cache_bytes() const override {
    return kStateBytes * pages_.size() + kPageBytes * *live_;
  }

  // Computes `count` tokens more.
  void advance(SequenceState& state, std::size_t count) {
    state.length += static_cast<std::int64_t>(count);
    auto& pages = pages_.at(state.slot);
    while (pages.size() < page_count(state.length)) pages.push_back(page());
  }

 private:
  static std::size_t page_count(std::int64_t length) {
    return static_cast<std::size_t>((length + kPageTokens - 1) / kPageTokens);
  }
  std::shared_ptr<int> page() {
    ++*live_;
    return {new int(0), [live = live_](int* p) {
              --*live;
              delete p;
            }};
  }

  std::shared_ptr<std::size_t> live_ = std::make_shared<std::size_t>(0);
  std::map<int, std::vector<std::shared_ptr<int>>> pages_;  // by slot
  int next_ = 0;
};

}  // namespace cupel::test
