// What the statistics see of a cell: for each item, which repeats were answered correctly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/assay/interval.h"
#include "cupel/eval/record.h"

namespace cupel {

struct ItemOutcomes {
  int item = 0;
  // Identifies the question: arms are only compared where it is equal. May be empty where a source
  // has none (then it must be empty in both arms).
  std::string prompt_hash;
  std::int64_t gold = 0;
  std::vector<std::uint8_t> correct;  // [repeats], 0 or 1

  double mean() const;
};

struct CellOutcomes {
  std::string name;
  std::vector<ItemOutcomes> items;  // by ascending item; all with the same number of repeats

  int repeats() const;
  double accuracy() const;  // mean over items, in [0, 1]
};

// Correctness by the lenient rule. The name is the records' cell. Throws InputError (with `where`)
// if there are none, if they mix tasks or identities, or if items have different repeats: it says
// which items.
CellOutcomes outcomes_from_records(std::span<const Record> records, const std::string& where);

// Two-sided interval for the accuracy on new items of the same kind. One repeat: Wilson. More: by
// item, mean +- z * sd / sqrt(items); trials are never pooled over repeats.
Interval accuracy_interval(const CellOutcomes& outcomes, double level);

// "3, 17, 40 and 12 more".
std::string list_items(std::span<const int> items);

}  // namespace cupel
