#include "cupel/assay/outcomes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

void check_one_source(std::span<const Record> records, const std::string& where) {
  if (records.empty()) throw InputError(where, "at least one record", "none");
  const Record& first = records.front();
  for (const Record& r : records) {
    if (r.task != first.task) {
      throw InputError(where, fmt::format("records of one task ({})", first.task), r.task);
    }
    if (r.identity != first.identity) {
      throw InputError(
          where, "records of one cell, build, model and settings",
          fmt::format("item {} repeat {} from cell {} ({}, {}, {}) beside cell {} ({}, {}, {})",
                      r.item, r.repeat, r.identity.cell, r.identity.settings, r.identity.build,
                      r.identity.model, first.identity.cell, first.identity.settings,
                      first.identity.build, first.identity.model));
    }
  }
}

}  // namespace

double ItemOutcomes::mean() const {
  return std::accumulate(correct.begin(), correct.end(), 0.0) / static_cast<double>(correct.size());
}

int CellOutcomes::repeats() const {
  return items.empty() ? 0 : static_cast<int>(items.front().correct.size());
}

double CellOutcomes::accuracy() const {
  double sum = 0;
  for (const ItemOutcomes& item : items) sum += item.mean();
  return items.empty() ? 0 : sum / static_cast<double>(items.size());
}

CellOutcomes outcomes_from_records(std::span<const Record> records, const std::string& where) {
  check_one_source(records, where);
  std::map<int, std::map<int, const Record*>> by_item;
  std::set<int> repeats;
  for (const Record& r : records) {
    const auto [at, inserted] = by_item[r.item].try_emplace(r.repeat, &r);
    if (!inserted) {
      throw InputError(where, "each item and repeat once",
                       fmt::format("item {} repeat {} twice", r.item, r.repeat));
    }
    repeats.insert(r.repeat);
  }

  CellOutcomes cell;
  cell.name = records.front().identity.cell;
  std::vector<int> incomplete;
  for (const auto& [item, runs] : by_item) {
    const Record& first = *runs.begin()->second;
    ItemOutcomes outcomes{item, first.prompt_hash, first.gold, {}};
    for (const auto& [repeat, record] : runs) {
      if (record->prompt_hash != first.prompt_hash || record->gold != first.gold) {
        throw InputError(where, "the same prompt and gold in every repeat",
                         fmt::format("item {} repeat {} with others", item, repeat));
      }
      outcomes.correct.push_back(record->correct ? 1 : 0);
    }
    if (runs.size() != repeats.size()) incomplete.push_back(item);
    cell.items.push_back(std::move(outcomes));
  }
  if (!incomplete.empty()) {
    throw InputError(where, fmt::format("{} repeats of every item", repeats.size()),
                     fmt::format("fewer of item {}", list_items(incomplete)));
  }
  return cell;
}

Interval accuracy_interval(const CellOutcomes& outcomes, double level) {
  const auto n = static_cast<double>(outcomes.items.size());
  const double mean = outcomes.accuracy();
  // A single item, or none, has no spread between items.
  if (outcomes.repeats() <= 1 || outcomes.items.size() < 2) {
    if (outcomes.items.empty()) return {0, 1};
    return wilson(std::llround(mean * n), static_cast<std::int64_t>(outcomes.items.size()), level);
  }
  double squares = 0;
  for (const ItemOutcomes& item : outcomes.items) {
    squares += (item.mean() - mean) * (item.mean() - mean);
  }
  const double half = normal_quantile(0.5 + level / 2) * std::sqrt(squares / (n - 1) / n);
  return {std::max(0.0, mean - half), std::min(1.0, mean + half)};
}

std::string list_items(std::span<const int> items) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kShown); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", items[i]);
  }
  if (items.size() > kShown) text += fmt::format(" and {} more", items.size() - kShown);
  return text;
}

}  // namespace cupel
