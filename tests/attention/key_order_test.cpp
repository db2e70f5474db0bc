// The order in which a query reads its keys, seen from outside.
//
// With q = 0 every weight is 1 and the output is the plain sum of the values, added in list order.
// In one element the row expected first holds -2^60, the row asked about +2^60, all others 1: ones
// between the two are absorbed, so the sum tells how many rows come after the later of the two.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "attention/sequence.h"
#include <gtest/gtest.h>

namespace cupel {
namespace {

using test::kHeads;
using test::kRow;
using test::Output;
using test::Sequence;
using test::Setting;

constexpr std::size_t kRope = 64, kNope = kRow - kRope;  // rope elements are stored as bf16

// A row of the key list: a position of the window or an entry.
struct Key {
  bool entry;
  std::size_t number;
};

std::vector<Key> window_keys(std::size_t position) {
  std::vector<Key> keys;
  for (std::size_t p = position < 127 ? 0 : position - 127; p <= position; ++p) {
    keys.push_back({false, p});
  }
  return keys;
}

std::vector<Key> expected_order(BackendKind kind, std::size_t position, int ratio) {
  std::vector<Key> keys = window_keys(position);
  switch (kind) {
    case BackendKind::kReference:
      break;
    case BackendKind::kPacked:
      std::ranges::reverse(keys);
      break;
    case BackendKind::kUnified:
      std::ranges::sort(keys, {}, [](const Key& key) { return key.number % 128; });
      break;
  }
  const std::size_t visible = ratio == 0 ? 0 : (position + 1) / static_cast<std::size_t>(ratio);
  for (std::size_t e = 0; e < visible; ++e) keys.push_back({true, e});
  return keys;
}

// The places in the list of rows [first, first + count) of `keys`, from the output of the last row.
std::vector<std::size_t> observed_places(const Setting& setting, int layer, std::size_t position,
                                         const std::vector<Key>& keys, std::size_t first,
                                         std::size_t count) {
  Sequence s(111, position + 1, test::kRatios[layer]);
  std::ranges::fill(s.q, 0.0f);
  std::ranges::fill(s.kv, 1.0f);
  std::ranges::fill(s.entries, 1.0f);
  const auto element = [&](const Key& key, std::size_t i) -> float& {
    return (key.entry ? s.entries : s.kv)[key.number * kRow + kNope + i];
  };
  for (std::size_t i = 0; i < count; ++i) {
    element(keys[0], i) = -0x1p60f;
    element(keys[first + i], i) = 0x1p60f;
  }
  CpuExecutor executor(1);
  const auto backend = setting.make(executor);
  const Output out = run_chunks(*backend, layer, backend->open(), s, {position, 1});
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    // Head 0, whose sink of -30 takes no share.
    const double mean = out.out[position * kHeads * kRow + kNope + i];
    const double after = std::round(mean * static_cast<double>(keys.size()));
    places.push_back(keys.size() - 1 - static_cast<std::size_t>(after));
  }
  return places;
}

class KeyOrder : public testing::TestWithParam<Setting> {};

TEST_P(KeyOrder, IsThatOfTheBackend) {
  // Without rounding to bf16, so that the sums are exact.
  Setting setting = GetParam();
  setting.numerics = Numerics::kFloat32;
  // Within the first window, at its end, at the wrap and beyond; up to 16 entries of ratio 4, which
  // are all selected.
  const std::pair<int, std::size_t> cases[] = {{0, 5},   {0, 127}, {0, 128}, {0, 200},
                                               {0, 255}, {1, 66},  {2, 255}, {2, 300}};
  for (const auto& [layer, position] : cases) {
    const auto keys = expected_order(setting.kind, position, test::kRatios[layer]);
    for (std::size_t first = 1; first < keys.size(); first += kRope) {
      const std::size_t count = std::min(kRope, keys.size() - first);
      std::vector<std::size_t> expected(count);
      std::iota(expected.begin(), expected.end(), first);
      EXPECT_EQ(observed_places(setting, layer, position, keys, first, count), expected)
          << "ratio " << test::kRatios[layer] << " position " << position;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, KeyOrder, testing::ValuesIn(test::settings()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cupel
