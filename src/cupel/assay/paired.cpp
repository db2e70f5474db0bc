#include "cupel/assay/paired.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <boost/math/distributions/binomial.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

void check_same_items(const CellOutcomes& a, const CellOutcomes& b) {
  const std::string where = fmt::format("{} against {}", b.name, a.name);
  for (const CellOutcomes* cell : {&a, &b}) {
    if (cell->items.empty() || cell->repeats() == 0) {
      throw InputError(where, "at least one answer in each cell",
                       fmt::format("none in {}", cell->name));
    }
  }
  std::vector<int> only_a;
  std::vector<int> only_b;
  std::vector<int> other_prompt;
  auto i = a.items.begin();
  auto j = b.items.begin();
  while (i != a.items.end() || j != b.items.end()) {
    if (j == b.items.end() || (i != a.items.end() && i->item < j->item)) {
      only_a.push_back((i++)->item);
    } else if (i == a.items.end() || j->item < i->item) {
      only_b.push_back((j++)->item);
    } else {
      if (i->prompt_hash != j->prompt_hash || i->gold != j->gold) other_prompt.push_back(i->item);
      ++i;
      ++j;
    }
  }
  if (!only_a.empty() || !only_b.empty()) {
    std::string found;
    if (!only_a.empty()) found = fmt::format("item {} only in {}", list_items(only_a), a.name);
    if (!only_b.empty()) {
      found += fmt::format("{}item {} only in {}", found.empty() ? "" : "; ", list_items(only_b),
                           b.name);
    }
    throw InputError(where, "the same items in both cells", found);
  }
  if (!other_prompt.empty()) {
    throw InputError(where, "the same prompt and gold for every item",
                     fmt::format("others for item {}", list_items(other_prompt)));
  }
}

// Sums over the items of one arm.
struct ArmSums {
  double variance = 0;  // sum of s^2[i], divisor R - 1; 0 with one repeat
  int disagreeing = 0;  // items whose repeats differ
};

ArmSums arm_sums(const CellOutcomes& cell) {
  ArmSums sums;
  const auto r = static_cast<double>(cell.repeats());
  for (const ItemOutcomes& item : cell.items) {
    const double mean = item.mean();
    if (mean > 0 && mean < 1) {
      ++sums.disagreeing;
      sums.variance += mean * (1 - mean) * r / (r - 1);
    }
  }
  return sums;
}

double new_items_error(double squares, double sum, double small_sample, double n) {
  // Squares are summed before the mean is taken off; rounding must not push it below the added
  // term.
  return 100 / n * std::sqrt(std::max(squares + small_sample - sum * sum / n, 0.0));
}

}  // namespace

std::optional<double> Comparison::unstable() const {
  if (unstable_reference && unstable_candidate) {
    return (*unstable_reference + *unstable_candidate) / 2;
  }
  return unstable_reference ? unstable_reference : unstable_candidate;
}

double mcnemar_one_sided(std::int64_t lost, std::int64_t gained) {
  if (lost == 0) return 1;
  const boost::math::binomial_distribution<double> half(static_cast<double>(lost + gained), 0.5);
  return boost::math::cdf(boost::math::complement(half, static_cast<double>(lost - 1)));
}

double mcnemar_two_sided(std::int64_t lost, std::int64_t gained) {
  return std::min(1.0, 2 * mcnemar_one_sided(std::max(lost, gained), std::min(lost, gained)));
}

Comparison compare(const CellOutcomes& reference, const CellOutcomes& candidate,
                   bool deterministic) {
  check_same_items(reference, candidate);
  const ArmSums ref = arm_sums(reference);
  const ArmSums cand = arm_sums(candidate);

  Comparison c;
  c.reference = reference.name;
  c.candidate = candidate.name;
  c.items = static_cast<int>(reference.items.size());
  c.repeats_reference = reference.repeats();
  c.repeats_candidate = candidate.repeats();
  if (deterministic) {
    c.broken_determinism = ref.disagreeing + cand.disagreeing;
    c.deterministic = c.broken_determinism == 0;
  }
  if (c.deterministic) c.repeats_reference = c.repeats_candidate = 1;

  double sum = 0;
  for (std::size_t i = 0; i < reference.items.size(); ++i) {
    const double d = reference.items[i].mean() - candidate.items[i].mean();
    sum += d;
    c.sum_squares += d * d;
    c.lost += d > 0 ? 1 : 0;
    c.gained += d < 0 ? 1 : 0;
  }
  const auto n = static_cast<double>(c.items);
  const auto r_ref = static_cast<double>(c.repeats_reference);
  const auto r_cand = static_cast<double>(c.repeats_candidate);
  c.loss = 100 * sum / n;
  c.se_new = new_items_error(c.sum_squares, sum, 2, n);
  if (c.repeats_reference >= 2 && c.repeats_candidate >= 2) {
    c.se_set = 100 / n * std::sqrt((ref.variance + 0.5) / r_ref + (cand.variance + 0.5) / r_cand);
  }
  if (c.repeats_reference == 1 && c.repeats_candidate == 1) {
    c.mcnemar_two_sided = mcnemar_two_sided(c.lost, c.gained);
    c.mcnemar_one_sided = mcnemar_one_sided(c.lost, c.gained);
  }
  if (c.deterministic || c.repeats_reference >= 2) c.unstable_reference = 4 * ref.variance;
  if (c.deterministic || c.repeats_candidate >= 2) c.unstable_candidate = 4 * cand.variance;
  if (c.unstable_reference && c.unstable_candidate) {
    c.changed_squares =
        std::max(0.0, c.sum_squares - ref.variance / r_ref - cand.variance / r_cand);
  }
  return c;
}

Interaction interaction(const CellOutcomes& reference_a, const CellOutcomes& candidate_a,
                        const CellOutcomes& reference_b, const CellOutcomes& candidate_b) {
  check_same_items(reference_a, candidate_a);
  check_same_items(reference_b, candidate_b);
  check_same_items(reference_a, reference_b);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < reference_a.items.size(); ++i) {
    const double d = (reference_a.items[i].mean() - candidate_a.items[i].mean()) -
                     (reference_b.items[i].mean() - candidate_b.items[i].mean());
    sum += d;
    squares += d * d;
  }
  const auto n = static_cast<double>(reference_a.items.size());
  Interaction result;
  result.name = fmt::format("({} - {}) - ({} - {})", reference_a.name, candidate_a.name,
                            reference_b.name, candidate_b.name);
  result.estimate = 100 * sum / n;
  result.standard_error = new_items_error(squares, sum, 4, n);
  const double half = kDisplayZ * result.standard_error;
  result.interval95 = {result.estimate - half, result.estimate + half};
  result.p_one_sided = normal_cdf(-result.estimate / result.standard_error);
  return result;
}

}  // namespace cupel
