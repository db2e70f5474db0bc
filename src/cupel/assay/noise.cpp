#include "cupel/assay/noise.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <boost/math/distributions/chi_squared.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

double chi_squared_quantile(double p, double degrees) {
  return boost::math::quantile(boost::math::chi_squared(degrees), p);
}

// Mean of a Poisson count of which `count` (any positive number) was seen: exact 95 % interval.
Interval poisson_interval(double count) {
  return {chi_squared_quantile(0.025, 2 * count) / 2,
          chi_squared_quantile(0.975, 2 * count + 2) / 2};
}

// The sampling variance of u^ is that of a Poisson count times a scale. An item with variance
// v = p(1-p) adds 4 s^2, whose variance is 16 (v - v^2 (4R-6)/(R-1)) / R; v^2 has an unbiased
// estimate from four repeats on. The scale lies between that of items at p = 1/2 and that of
// rare failures.
double variance_scale(const CellOutcomes& outcomes, double unstable) {
  const double r = outcomes.repeats();
  const double rare = 4 / r;
  if (r < 4 || unstable <= 0) return rare;
  double squares = 0;  // sum of v^2
  for (const ItemOutcomes& item : outcomes.items) {
    const double k = std::round(item.mean() * r);
    squares += k * (k - 1) * (r - k) * (r - k - 1) / (r * (r - 1) * (r - 2) * (r - 3));
  }
  const double variance = 16 * (unstable / 4 - squares * (4 * r - 6) / (r - 1)) / r;
  return std::clamp(variance / unstable, 2 / (r * (r - 1)), rare);
}

Interval unstable_interval(const CellOutcomes& outcomes, const RunNoise& noise) {
  const double r = noise.repeats;
  // An unstable item shows itself with probability 1 - p^R - (1-p)^R, which is at least
  // 4p(1-p) (1 - 2^(1-R)); with no item shown, their number is below -ln 0.05 with 95 %.
  const double unseen = -std::log(kAlpha) / (1 - std::exp2(1 - r));
  const double items = noise.items;
  if (noise.disagreeing == 0) return {0, std::min(unseen, items)};
  const double scale = variance_scale(outcomes, noise.unstable);
  const Interval count = poisson_interval(noise.unstable / scale);
  return {scale * count.low, std::min(std::max(scale * count.high, unseen), items)};
}

template <typename Same>
Agreement agreement(std::span<const Record> records, const std::string& where, const Same& same) {
  const int repeats = outcomes_from_records(records, where).repeats();
  if (repeats < 2) throw InputError(where, "at least two repeats", std::to_string(repeats));
  std::map<int, std::vector<const Record*>> by_item;
  for (const Record& r : records) by_item[r.item].push_back(&r);

  std::vector<PairCount> items;
  for (const auto& [item, runs] : by_item) {
    PairCount& count = items.emplace_back();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      for (std::size_t j = i + 1; j < runs.size(); ++j) {
        ++count.pairs;
        count.differing += same(*runs[i], *runs[j]) ? 0 : 1;
      }
    }
  }
  return agreement_of(items, repeats / 2);
}

}  // namespace

Agreement agreement_of(std::span<const PairCount> items, std::int64_t independent_of_item) {
  if (items.empty()) throw InputError("agreement", "at least one item", "none");
  Agreement a;
  double squares = 0;  // of the items' differing pairs
  for (const PairCount& item : items) {
    a.pairs += item.pairs;
    a.differing += item.differing;
    squares += static_cast<double>(item.differing * item.differing);
  }
  const auto n = static_cast<double>(items.size());
  const auto pairs_per_item = static_cast<double>(items.front().pairs);
  a.independent_pairs = static_cast<std::int64_t>(items.size()) * independent_of_item;
  a.rate = static_cast<double>(a.differing) / static_cast<double>(a.pairs);
  if (a.differing == 0) {
    a.rate95 = {0, -std::expm1(std::log(kAlpha) / static_cast<double>(a.independent_pairs))};
  } else if (items.front().pairs == 1) {
    a.rate95 = clopper_pearson(a.differing, a.pairs, 0.95);
  } else {
    const double mean = static_cast<double>(a.differing) / n;
    const double variance = std::max(squares / n - mean * mean, mean / n);
    const double half = kDisplayZ * std::sqrt(variance / n) / pairs_per_item;
    // Few differing items are no normal sum: the bound for none holds a fortiori.
    const double none = -std::expm1(std::log(kAlpha) / static_cast<double>(a.independent_pairs));
    a.rate95 = {std::max(0.0, a.rate - half), std::min(1.0, std::max(a.rate + half, none))};
  }
  return a;
}

RunNoise run_noise(const CellOutcomes& outcomes) {
  RunNoise noise;
  noise.items = static_cast<int>(outcomes.items.size());
  noise.repeats = outcomes.repeats();
  if (noise.items == 0 || noise.repeats < 2) {
    throw InputError(outcomes.name, "items with at least two repeats",
                     fmt::format("{} items, {} repeats", noise.items, noise.repeats));
  }
  const auto r = static_cast<double>(noise.repeats);
  std::vector<double> scores(static_cast<std::size_t>(noise.repeats));
  double variance = 0;
  for (const ItemOutcomes& item : outcomes.items) {
    const double mean = item.mean();
    if (mean > 0 && mean < 1) {
      ++noise.disagreeing;
      variance += mean * (1 - mean) * r / (r - 1);
    }
    for (std::size_t k = 0; k < scores.size(); ++k) scores[k] += item.correct[k];
  }
  noise.unstable = 4 * variance;
  noise.unstable95 = unstable_interval(outcomes, noise);

  const double n = noise.items;
  double centre = 0;
  for (const double score : scores) centre += score / r;
  double squares = 0;
  for (const double score : scores) squares += (score - centre) * (score - centre);
  const double degrees = r - 1;
  noise.deviation_by_items = 100 / n * std::sqrt(variance);
  noise.deviation_by_runs = 100 / n * std::sqrt(squares / degrees);
  noise.deviation_by_runs95 = {100 / n * std::sqrt(squares / chi_squared_quantile(0.975, degrees)),
                               100 / n * std::sqrt(squares / chi_squared_quantile(0.025, degrees))};
  if (variance > 0) {
    const boost::math::chi_squared same(degrees);
    // Scores are whole numbers: equal ones say no more than a spread of half an item.
    const double at_most = std::pow(std::sqrt(squares) + 0.5, 2);
    const double below = boost::math::cdf(same, at_most / variance);
    const double above = boost::math::cdf(boost::math::complement(same, squares / variance));
    noise.p_same = std::min(1.0, 2 * std::min(below, above));
  }
  return noise;
}

Agreement text_agreement(std::span<const Record> records, const std::string& where) {
  return agreement(records, where,
                   [](const Record& a, const Record& b) { return a.output == b.output; });
}

Agreement answer_agreement(std::span<const Record> records, const std::string& where) {
  return agreement(records, where,
                   [](const Record& a, const Record& b) { return a.extracted == b.extracted; });
}

bool identical_passes(std::span<const Record> records) {
  std::map<int, const Record*> first;
  bool repeated = false;
  for (const Record& r : records) {
    const auto [at, inserted] = first.try_emplace(r.item, &r);
    if (inserted) continue;
    repeated = true;
    if (at->second->output != r.output || at->second->correct != r.correct) return false;
  }
  return repeated;
}

CellOutcomes first_repeats(const CellOutcomes& outcomes, int repeats) {
  CellOutcomes cut = outcomes;
  for (ItemOutcomes& item : cut.items) item.correct.resize(static_cast<std::size_t>(repeats));
  return cut;
}

std::vector<std::string> notes(const RunNoise& noise) {
  std::vector<std::string> lines;
  if (noise.disagreeing == 0) {
    lines.push_back(fmt::format(
        "No item changed between right and wrong over {} repeats: at most u = {:.1f} unstable "
        "items (95 %), not none.",
        noise.repeats, noise.unstable95.high));
  }
  if (noise.p_same && *noise.p_same < kSharedEffectLevel) {
    const bool more = noise.deviation_by_runs > noise.deviation_by_items;
    lines.push_back(fmt::format(
        "Whole runs vary {} than their items imply ({:.2f} against {:.2f} points, p = {:.2g}): {}.",
        more ? "more" : "less", noise.deviation_by_runs, noise.deviation_by_items, *noise.p_same,
        more ? "a shared run or launch effect; the bounds of the verdict do not contain it"
             : "the repeats are not independent"));
  }
  return lines;
}

}  // namespace cupel
