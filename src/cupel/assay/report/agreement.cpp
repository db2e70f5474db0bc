#include "cupel/assay/report/agreement.h"

#include <algorithm>
#include <map>

#include "cupel/base/error.h"

namespace cupel {
namespace {

template <typename Same>
Agreement between(std::span<const Record> a, std::span<const Record> b, const std::string& where,
                  const Same& same) {
  std::map<int, std::vector<const Record*>> by_item;
  for (const Record& r : b) by_item[r.item].push_back(&r);
  std::map<int, PairCount> items;
  std::size_t smaller = std::max(a.size(), b.size());
  std::map<int, std::size_t> repeats;
  for (const Record& r : a) {
    const auto other = by_item.find(r.item);
    if (other == by_item.end()) throw InputError(where, "the same items", "others");
    PairCount& count = items[r.item];
    for (const Record* s : other->second) {
      ++count.pairs;
      count.differing += same(r, *s) ? 0 : 1;
    }
    ++repeats[r.item];
  }
  if (items.empty() || items.size() != by_item.size()) {
    throw InputError(where, "the same items", "others");
  }
  for (const auto& [item, n] : repeats) smaller = std::min({smaller, n, by_item[item].size()});
  std::vector<PairCount> counts;
  counts.reserve(items.size());
  for (const auto& [item, count] : items) counts.push_back(count);
  return agreement_of(counts, static_cast<std::int64_t>(smaller));
}

}  // namespace

Agreement text_agreement_between(std::span<const Record> a, std::span<const Record> b,
                                 const std::string& where) {
  return between(a, b, where,
                 [](const Record& x, const Record& y) { return x.output == y.output; });
}

Agreement answer_agreement_between(std::span<const Record> a, std::span<const Record> b,
                                   const std::string& where) {
  return between(a, b, where,
                 [](const Record& x, const Record& y) { return x.extracted == y.extracted; });
}

bool has_answers(std::span<const Record> records) {
  return std::ranges::any_of(records, [](const Record& r) { return r.extracted.has_value(); });
}

}  // namespace cupel
