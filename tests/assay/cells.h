// Cells for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cupel/assay/outcomes.h"

namespace cupel::test {

using Runs = std::vector<std::uint8_t>;

// One item for each element of `items`, numbered from 0.
inline CellOutcomes cell(std::string name, const std::vector<Runs>& items) {
  CellOutcomes c;
  c.name = std::move(name);
  for (const Runs& runs : items) {
    const int id = static_cast<int>(c.items.size());
    c.items.push_back({id, fmt::format("h{}", id), id, runs});
  }
  return c;
}

// Two cells of n items and one repeat: `lost` items right in the first only, then `gained` items
// right in the second only, all others right in both.
inline std::pair<CellOutcomes, CellOutcomes> single_runs(int n, int lost, int gained) {
  std::vector<Runs> a(static_cast<std::size_t>(n), Runs{1});
  std::vector<Runs> b = a;
  for (int i = 0; i < lost; ++i) b[static_cast<std::size_t>(i)][0] = 0;
  for (int i = lost; i < lost + gained; ++i) a[static_cast<std::size_t>(i)][0] = 0;
  return {cell("ref", a), cell("cand", b)};
}

}  // namespace cupel::test
