#include "cupel/assay/verdict.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/assay/multiplicity.h"
#include "cupel/assay/plan.h"

namespace cupel {
namespace {

// More repeats than this are no practical advice.
constexpr int kMostRepeats = 64;

void check(const VerdictRule& rule) {
  if (!(rule.margin > 0 && rule.margin <= 100)) {
    throw InputError("margin", "points above 0 and at most 100", fmt::format("{}", rule.margin));
  }
  if (!(rule.z > 0 && std::isfinite(rule.z))) {
    throw InputError("z", "a positive quantile", fmt::format("{}", rule.z));
  }
  if (!(rule.alpha > 0 && rule.alpha < 0.5)) {
    throw InputError("alpha", "a level above 0 and below 0.5", fmt::format("{}", rule.alpha));
  }
}

// Repeats in each arm that give 80 % power to PASS or to REGRESSION, were the loss as estimated.
// REGRESSION is planned at alpha / family, PASS needs no adjustment.
std::optional<int> repeats_that_decide(const Comparison& c, const VerdictRule& rule,
                                       double changed_squares, double unstable,
                                       std::size_t family) {
  std::optional<int> repeats;
  const double loss = std::max(c.loss, 0.0);
  const double alpha = normal_cdf(-rule.z);
  if (loss < rule.margin) {
    const int to_pass = repeats_to_pass(c.items, unstable, rule.margin, loss, alpha);
    if (to_pass <= kMostRepeats) repeats = to_pass;
  }
  if (loss > 0) {
    const Study study{c.items, unstable, changed_squares, 1, 1};
    const auto shown = repeats_to_regression(study, loss, repeats.value_or(kMostRepeats),
                                             alpha / static_cast<double>(family));
    if (shown) repeats = shown;
  }
  if (!repeats) return std::nullopt;
  // This many were not enough, whatever was planned.
  const int now = std::min(c.repeats_reference, c.repeats_candidate);
  return std::max(*repeats, now + 1);
}

std::string join(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + ", or " + b;
}

Remedy find_remedy(const Comparison& c, const VerdictRule& rule, std::size_t family) {
  Remedy remedy;
  const double alpha = normal_cdf(-rule.z) / static_cast<double>(family);
  const bool noise_known = c.changed_squares.has_value();
  // Without repeats in both arms the changes cannot be told apart: plan as if all were run noise.
  const double changed = c.changed_squares.value_or(0);
  const double unstable = noise_known ? c.unstable().value_or(0) : 2 * c.sum_squares;
  std::string repeats_text;
  if (!c.deterministic) {
    remedy.repeats = repeats_that_decide(c, rule, changed, unstable, family);
    if (remedy.repeats) {
      repeats_text = fmt::format("{} repeats in each arm (now {} and {})", *remedy.repeats,
                                 c.repeats_reference, c.repeats_candidate);
      if (!noise_known) repeats_text += ", if the changed answers are run noise";
    }
  }
  const double worst_changed = c.changed_squares.value_or(c.sum_squares);
  std::string items_text;
  if (needs_more_items(c.items, worst_changed, rule.margin, alpha)) {
    remedy.items = items_needed(c.items, worst_changed, rule.margin, alpha);
    items_text = fmt::format("about {} items (now {})", *remedy.items, c.items);
    if (!noise_known) items_text += ", if the changed answers are permanent";
  }
  remedy.text = join(repeats_text, items_text);
  if (remedy.text.empty()) {
    remedy.text = c.deterministic
                      ? "nothing by repeating: the loss is near the zone from 0 to the margin"
                      : "neither repeats nor items: the loss is too near the zone from 0 "
                        "to the margin";
  }
  return remedy;
}

Interval around(double centre, double half) {
  return {centre - half, centre + half};
}

Decision decide_in_family(const Comparison& c, const VerdictRule& rule, std::size_t family,
                          double p_holm, double q) {
  Decision d;
  d.interval90 = {c.lower_bound(rule.z), c.upper_bound(rule.z)};
  d.interval95_new = around(c.loss, kDisplayZ * c.se_new);
  if (c.se_set) d.interval95_set = around(c.loss, kDisplayZ * *c.se_set);
  d.p_regression = normal_cdf(-c.loss / c.se_new);
  d.p_holm = p_holm;
  d.q_value = q;
  const bool real_loss = d.interval90.low > 0;
  const bool rejected = real_loss && p_holm <= rule.alpha;
  if (d.interval90.high < rule.margin) {
    d.verdict = Verdict::kPass;
    d.loss_inside_margin = real_loss;
  } else if (rejected) {
    d.verdict = Verdict::kRegression;
    d.loss_beyond_margin = d.interval90.low > rule.margin;
  } else {
    d.verdict = Verdict::kInconclusive;
    d.held_by_family = real_loss;
    d.remedy = find_remedy(c, rule, family);
  }
  return d;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kRegression:
      return "REGRESSION";
    case Verdict::kInconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

Decision decide(const Comparison& comparison, const VerdictRule& rule) {
  return decide_family({&comparison, 1}, rule).front();
}

std::vector<Decision> decide_family(std::span<const Comparison> comparisons,
                                    const VerdictRule& rule, std::span<const double> further) {
  check(rule);
  std::vector<double> p_values;
  for (const Comparison& c : comparisons) p_values.push_back(normal_cdf(-c.loss / c.se_new));
  p_values.insert(p_values.end(), further.begin(), further.end());
  const std::vector<double> holm = holm_adjusted(p_values);
  const std::vector<double> q = benjamini_hochberg(p_values);
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    decisions.push_back(decide_in_family(comparisons[i], rule, p_values.size(), holm[i], q[i]));
  }
  return decisions;
}

ExitCode exit_code(std::span<const Decision> decisions) {
  const auto any = [&](Verdict verdict) {
    return std::any_of(decisions.begin(), decisions.end(),
                       [&](const Decision& d) { return d.verdict == verdict; });
  };
  if (any(Verdict::kRegression)) return ExitCode::kRegression;
  // Nothing compared is not a pass.
  if (any(Verdict::kInconclusive) || decisions.empty()) return ExitCode::kInconclusive;
  return ExitCode::kPass;
}

std::vector<std::string> notes(const Comparison& c, const Decision& d) {
  std::vector<std::string> lines;
  if (d.loss_inside_margin) lines.emplace_back("A real loss, inside the margin.");
  if (d.loss_beyond_margin) lines.emplace_back("A loss beyond the margin is shown.");
  if (d.held_by_family) {
    lines.push_back(fmt::format(
        "Alone it would be a REGRESSION; Holm's p over the family is {:.3f}.", d.p_holm));
  }
  if (d.verdict == Verdict::kInconclusive) {
    lines.push_back(fmt::format("What would decide: {}.", d.remedy.text));
  }
  if (c.broken_determinism > 0) {
    lines.push_back(
        fmt::format("Declared deterministic, yet the repeats of {} items differ: treated as noisy.",
                    c.broken_determinism));
  }
  if (d.interval95_set) {
    lines.push_back(
        fmt::format("This item set alone: 95 % {:.2f} to {:.2f}; unstable items u = {:.0f} "
                    "(reference), {:.0f}.",
                    d.interval95_set->low, d.interval95_set->high, c.unstable_reference.value_or(0),
                    c.unstable_candidate.value_or(0)));
  } else if (c.deterministic) {
    lines.emplace_back(
        "Deterministic: one pass says all; both bounds carry the luck of the items.");
  } else {
    lines.emplace_back(
        "One repeat in an arm: run noise on this item set is not identifiable; both bounds carry "
        "the "
        "luck of the items.");
  }
  if (!c.deterministic) {
    lines.emplace_back(
        "Holds for these launches: repeats on one server do not show how launches vary.");
  }
  if (c.mcnemar_two_sided) {
    lines.push_back(
        fmt::format("Exact McNemar test, two-sided: p = {:.2g}.", *c.mcnemar_two_sided));
  }
  return lines;
}

}  // namespace cupel
