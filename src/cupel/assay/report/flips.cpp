#include "cupel/assay/report/flips.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace cupel {
namespace {

using Runs = std::vector<const Record*>;

std::map<int, Runs> by_item(std::span<const Record> records) {
  std::map<int, Runs> items;
  for (const Record& r : records) items[r.item].push_back(&r);
  for (auto& [item, runs] : items) {
    std::ranges::sort(runs, {}, [](const Record* r) { return r->repeat; });
  }
  return items;
}

double share_correct(const Runs& runs) {
  const auto correct = std::ranges::count_if(runs, [](const Record* r) { return r->correct; });
  return static_cast<double>(correct) / static_cast<double>(runs.size());
}

// There is one: shares of correct repeats differ between the arms.
const Record& first_that_is(bool correct, const Runs& runs) {
  return **std::ranges::find_if(runs, [&](const Record* r) { return r->correct == correct; });
}

FlippedAnswer answer_of(const Record& r) {
  FlippedAnswer answer{r.repeat, r.correct, r.extracted, r.stop_reason, {}, r.min_margin_step};
  if (std::isfinite(r.min_margin)) answer.min_margin = r.min_margin;
  return answer;
}

NearTie near_tie_of(const FlippedAnswer& answer, std::optional<int> token) {
  if (!answer.min_margin) return NearTie::kUnknown;
  if (*answer.min_margin >= kNearTie) return NearTie::kNo;  // so it is at every token
  return token == answer.min_margin_step ? NearTie::kYes : NearTie::kUnknown;
}

NearTie either(NearTie a, NearTie b) {
  if (a == NearTie::kYes || b == NearTie::kYes) return NearTie::kYes;
  return a == b ? a : NearTie::kUnknown;
}

// Records of other tools have no build, and no gold either.
bool is_own(const Record& r) {
  return !r.identity.build.empty();
}

Flip make_flip(int item, double change, const Runs& reference, const Runs& candidate) {
  const Record& a = first_that_is(change > 0, reference);
  const Record& b = first_that_is(change < 0, candidate);
  Flip flip{.item = item,
            .lost = change > 0,
            .change = change,
            .question = a.prompt_hash,
            .gold = {},
            .reference = answer_of(a),
            .candidate = answer_of(b),
            .text = align(a.output, b.output),
            .token = {}};
  if (is_own(a)) flip.gold = a.gold;
  if (!a.output_ids.empty() && !b.output_ids.empty()) {
    flip.token = first_different_token(a.output_ids, b.output_ids);
  }
  flip.near_tie =
      either(near_tie_of(flip.reference, flip.token), near_tie_of(flip.candidate, flip.token));
  return flip;
}

}  // namespace

std::string_view near_tie_name(NearTie near_tie) {
  switch (near_tie) {
    case NearTie::kYes:
      return "yes";
    case NearTie::kNo:
      return "no";
    case NearTie::kUnknown:
      break;
  }
  return "unknown";
}

std::string margin_sentence(const FlippedAnswer& answer, std::optional<int> token) {
  if (!answer.min_margin) return "The margin is not known.";
  const float margin = *answer.min_margin;
  if (token == answer.min_margin_step) {
    return fmt::format("Margin {:.3g} at this token, the smallest of the answer: {}.", margin,
                       margin < kNearTie ? "a near-tie" : "no near-tie");
  }
  const std::string smallest = fmt::format("{:.3g}, at token {}", margin, answer.min_margin_step);
  if (margin >= kNearTie) {
    return fmt::format("The smallest margin of the answer is {}: no near-tie here.", smallest);
  }
  return fmt::format("The smallest margin of the answer is {}; that of this token is larger.",
                     smallest);
}

std::vector<Flip> find_flips(std::span<const Record> reference, std::span<const Record> candidate) {
  std::vector<Flip> flips;
  const std::map<int, Runs> candidates = by_item(candidate);
  for (const auto& [item, runs] : by_item(reference)) {
    const auto other = candidates.find(item);
    if (other == candidates.end()) continue;
    const double change = share_correct(runs) - share_correct(other->second);
    if (change != 0) flips.push_back(make_flip(item, change, runs, other->second));
  }
  return flips;
}

}  // namespace cupel
