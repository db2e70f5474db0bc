#include "cupel/assay/probe_verdict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include "cupel/assay/multiplicity.h"
#include "cupel/assay/outcomes.h"
#include "cupel/assay/report/format.h"

namespace cupel {
namespace {

double scale(ProbeKind kind) {
  return kind == ProbeKind::kNll ? 1 : 100;
}

// Prompts of the probe phase have the lengths that the target counts: one that counts a
// begin-of-sentence token more is asked a few others.
void keep_common(ProbeResult& a, ProbeResult& b) {
  const auto drop_others = [](ProbeResult& from, const ProbeResult& other) {
    std::set<std::pair<int, std::string>> there;
    for (const ProbeItem& item : other.items) there.emplace(item.id, item.prompt_hash);
    std::erase_if(from.items, [&](const ProbeItem& item) {
      return !there.contains({item.id, item.prompt_hash});
    });
  };
  drop_others(a, b);
  drop_others(b, a);
}

void check_same_prompts(const ProbeResult& a, const ProbeResult& b, const std::string& name_a,
                        const std::string& name_b) {
  const std::string where = fmt::format("probe {}", probe_name(a.kind));
  std::vector<int> differing;
  for (std::size_t i = 0; i < std::max(a.items.size(), b.items.size()); ++i) {
    const bool both = i < a.items.size() && i < b.items.size();
    if (both && a.items[i].id == b.items[i].id &&
        a.items[i].prompt_hash == b.items[i].prompt_hash) {
      continue;
    }
    differing.push_back(i < a.items.size() ? a.items[i].id : b.items[i].id);
  }
  if (!differing.empty()) {
    throw InputError(where, fmt::format("the same prompts in {} and {}", name_a, name_b),
                     fmt::format("other ones at {}", list_items(differing)));
  }
  if (a.items.size() < 2) throw InputError(where, "two prompts or more", "fewer");
}

// Prompts at which the upper bound would be below the margin, were the loss as estimated and the
// prompts that differ in proportion.
std::string prompts_that_decide(const ProbeComparison& c, double margin) {
  const double allowed = (margin - std::max(c.loss, 0.0)) / kDecisionZ;
  if (allowed <= 0) return "more prompts would not: the loss is not below the margin";
  const double n = c.items;
  const double k = scale(c.kind);
  const double constant = c.kind == ProbeKind::kNll ? 0 : 2;
  // The N with allowed^2 * N^2 = k^2 * (spread * N / n + constant).
  const double per_prompt =
      std::max(0.0, (c.standard_error * n) * (c.standard_error * n) / n - constant * k * k / n);
  const double wanted =
      (per_prompt + std::sqrt(per_prompt * per_prompt + 4 * allowed * allowed * constant * k * k)) /
      (2 * allowed * allowed);
  return fmt::format("about {:.0f} prompts (now {})", std::ceil(std::max(wanted, n + 1)), c.items);
}

}  // namespace

ProbeFigure probe_figure(const ProbeResult& result) {
  const std::size_t n = result.items.size();
  double sum = 0;
  bool shares = result.kind != ProbeKind::kNll;
  for (const ProbeItem& item : result.items) {
    sum += item.fault;
    shares = shares && (item.fault == 0 || item.fault == 1);
  }
  ProbeFigure figure;
  const double k = scale(result.kind);
  if (n == 0) return figure;
  figure.mean = k * sum / static_cast<double>(n);
  if (shares || n < 2) {
    const Interval i = wilson(std::llround(sum), static_cast<std::int64_t>(n), 0.95);
    figure.interval95 = {k * i.low, k * i.high};
    return figure;
  }
  std::vector<double> faults;
  faults.reserve(n);
  for (const ProbeItem& item : result.items) faults.push_back(item.fault);
  const Interval i = mean_interval(faults, 0.95);
  figure.interval95 = {k * i.low, k * i.high};
  return figure;
}

ProbeComparison compare_probes(const ProbeResult& all_of_reference,
                               const ProbeResult& all_of_candidate,
                               const std::string& reference_name,
                               const std::string& candidate_name) {
  ProbeResult reference = all_of_reference;
  ProbeResult candidate = all_of_candidate;
  if (reference.kind == ProbeKind::kPhase) keep_common(reference, candidate);
  check_same_prompts(reference, candidate, reference_name, candidate_name);
  ProbeComparison c;
  c.kind = reference.kind;
  c.reference = reference_name;
  c.candidate = candidate_name;
  c.items = static_cast<int>(reference.items.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < reference.items.size(); ++i) {
    const double d = candidate.items[i].fault - reference.items[i].fault;
    sum += d;
    squares += d * d;
  }
  const double n = c.items;
  const double spread = std::max(0.0, squares - sum * sum / n);
  const double k = scale(c.kind);
  c.loss = k * sum / n;
  c.standard_error =
      c.kind == ProbeKind::kNll ? std::sqrt(spread / (n - 1) / n) : k * std::sqrt(spread + 2) / n;
  const auto around = [&](double p) {
    const double half = students_t_quantile(p, n - 1) * c.standard_error;
    return Interval{c.loss - half, c.loss + half};
  };
  c.bounds = around(1 - kAlpha);
  c.interval95 = around(0.975);
  if (c.standard_error > 0) {
    c.p = cdf(boost::math::students_t(n - 1), -c.loss / c.standard_error);
  } else {
    c.p = c.loss > 0 ? 0 : 1;
  }
  return c;
}

void check_probe_margin(ProbeKind kind, double margin) {
  const std::string where = fmt::format("--probe {}", probe_name(kind));
  if (kind == ProbeKind::kRepeatability) {
    throw InputError(where, "no margin: texts that differ are reported and are no regression",
                     fmt::format("{:g}", margin));
  }
  if (!(margin > 0 && std::isfinite(margin))) {
    throw InputError(where, "a margin above 0", fmt::format("{:g}", margin));
  }
}

int probe_digits(ProbeKind kind) {
  return kind == ProbeKind::kNll ? 4 : 2;
}

std::string probe_sentence(const ProbeComparison& c) {
  std::string verdict = c.kind == ProbeKind::kRepeatability ? "shown, never judged"
                                                            : "no margin declared, not judged";
  if (c.verdict && c.margin) {
    verdict = fmt::format("{} at a margin of {:g}", verdict_name(*c.verdict), *c.margin);
  }
  const int digits = probe_digits(c.kind);
  return fmt::format("{}: {:.{}f}, bounds at 5 % each side {:.{}f} to {:.{}f}, {}: {}",
                     probe_name(c.kind), c.loss, digits, c.bounds.low, digits, c.bounds.high,
                     digits, p_is(c.p), verdict);
}

std::vector<double> gating_p_values(std::span<const ProbeComparison> comparisons) {
  std::vector<double> p;
  for (const ProbeComparison& c : comparisons) {
    if (c.margin) p.push_back(c.p);
  }
  return p;
}

void decide_probes(std::span<ProbeComparison> comparisons, std::span<const double> family,
                   double alpha) {
  std::vector<double> p = gating_p_values(comparisons);
  p.insert(p.end(), family.begin(), family.end());
  const std::vector<double> holm = holm_adjusted(p);
  std::size_t next = 0;
  for (ProbeComparison& c : comparisons) {
    if (!c.margin) continue;
    check_probe_margin(c.kind, *c.margin);
    c.p_holm = holm[next++];
    if (c.bounds.high < *c.margin) {
      c.verdict = Verdict::kPass;
    } else if (c.bounds.low > 0 && c.p_holm <= alpha) {
      c.verdict = Verdict::kRegression;
    } else {
      c.verdict = Verdict::kInconclusive;
      c.remedy = prompts_that_decide(c, *c.margin);
    }
  }
}

}  // namespace cupel
