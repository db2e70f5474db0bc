// From compared weights and configurations to findings, ranks and a verdict.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "cupel/checkpoint/preflight_judge.h"

namespace cupel {
namespace {

using Status = WeightStatus;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void summarise_roles(PreflightReport& report) {
  std::map<std::pair<bool, std::string>, RoleSummary> roles;
  std::map<std::pair<bool, std::string>, std::vector<double>> changes;
  for (const WeightChange& w : report.weights) {
    const std::pair key(!w.target, w.role);
    RoleSummary& role = roles[key];
    role.role = w.role;
    role.target = w.target;
    ++role.weights;
    switch (w.status) {
      case Status::kBitEqual:
        ++role.bit_equal;
        break;
      case Status::kValueEqual:
        ++role.value_equal;
        break;
      case Status::kChanged:
        ++role.changed;
        changes[key].push_back(w.diff.relative_change);
        if (w.diff.relative_change > role.max_change || role.max_name.empty()) {
          role.max_change = w.diff.relative_change;
          role.max_name = w.name;
        }
        if (std::isfinite(w.diff.cosine))
          role.min_cosine = std::min(role.min_cosine, w.diff.cosine);
        break;
      default:
        ++role.other;
    }
  }
  for (auto& [key, role] : roles) {
    role.median_change = median(changes[key]);
    report.roles.push_back(role);
  }
  std::ranges::stable_sort(report.roles, [](const RoleSummary& a, const RoleSummary& b) {
    return std::tuple(!a.target, -a.max_change) < std::tuple(!b.target, -b.max_change);
  });
}

void list_not_compared(PreflightReport& report, const CheckpointView& before,
                       const CheckpointView& after) {
  const auto side = [&](const CheckpointView& view, std::string_view name) {
    if (view.kind() == CheckpointView::Kind::kConfigOnly) {
      report.not_compared.push_back(fmt::format("tensors: {} is a configuration alone", name));
    } else if (view.kind() == CheckpointView::Kind::kHeadersOnly) {
      report.not_compared.push_back(fmt::format("values: {} is looked at by its headers", name));
    }
  };
  side(before, "OLD");
  side(after, "NEW");
  std::size_t target = 0;
  for (const WeightChange& w : report.weights)
    target += w.status == Status::kNotCompared && w.target;
  if (target > 0) {
    report.not_compared.push_back(
        fmt::format("values of {} of the target", plural(target, "weight")));
  }
  if (!before.config() || !after.config()) {
    report.not_compared.push_back("the tensor catalogue: a config.json is missing or refused");
  }
}

void decide(PreflightReport& report, const CheckpointView& before, const CheckpointView& after) {
  std::size_t structural = 0;
  std::size_t moved = 0;
  std::size_t undecided = 0;
  std::size_t target = 0;
  std::size_t new_math = 0;
  for (const WeightChange& w : report.weights) {
    if (!w.target) continue;
    ++target;
    moved += w.status == Status::kChanged;
    undecided += w.status == Status::kNotCompared;
    new_math += w.new_math;
  }
  std::string first;
  std::string suspects;
  for (const Finding& f : report.findings) {
    if (!f.target) continue;
    if (f.severity <= Severity::kStructure) {
      ++structural;
      if (first.empty()) first = f.what;
    }
    if (f.severity == Severity::kDamage && suspects.empty()) suspects = f.what;
    if (f.severity == Severity::kSuspect && f.what.starts_with("config ")) ++undecided;
  }
  const bool values =
      before.kind() == CheckpointView::Kind::kFull && after.kind() == CheckpointView::Kind::kFull;
  if (structural > 0) {
    report.verdict = Verdict::kStructural;
    report.verdict_text = fmt::format("structural change: {}", first);
    if (structural > 1) report.verdict_text += fmt::format(" (and {} more)", structural - 1);
  } else if (moved > 0 || new_math > 0) {
    report.verdict = Verdict::kInert;
    report.verdict_text = "structurally inert, numerics moved: ";
    if (!suspects.empty()) report.verdict_text += suspects + "; ";
    report.verdict_text +=
        moved > 0 ? fmt::format("{} of {} target weights hold other values", moved, target)
                  : fmt::format(
                        "{} expert weights have the same values in another form, with "
                        "activations quantised in other groups",
                        new_math);
  } else if (!values || undecided > 0 || !before.config() || !after.config()) {
    report.verdict = Verdict::kUndecided;
    report.verdict_text = "structurally inert as far as compared; not decided: " +
                          (report.not_compared.empty() ? std::string("see the findings")
                                                       : report.not_compared.front());
  } else {
    report.verdict = Verdict::kIdentical;
    report.verdict_text = fmt::format(
        "identical for the target: {} weights equal in value, no field that reaches it differs",
        target);
  }
}

}  // namespace

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void add_finding(PreflightReport& report, Severity severity, std::string what, std::string evidence,
                 std::vector<std::string> tensors, double weight, bool target) {
  if (!target && severity < Severity::kDrafter) {
    what = "drafter: " + what;
    severity = Severity::kDrafter;
  }
  report.findings.push_back(
      {severity, std::move(what), std::move(evidence), std::move(tensors), weight, target});
}

void judge_preflight(PreflightReport& report, const CheckpointView& before,
                     const CheckpointView& after) {
  summarise_roles(report);
  find_structure(report, before, after);
  find_value_changes(report);
  list_not_compared(report, before, after);
  std::ranges::stable_sort(report.findings, [](const Finding& a, const Finding& b) {
    return std::tuple(a.severity, !a.target, -a.weight) <
           std::tuple(b.severity, !b.target, -b.weight);
  });
  decide(report, before, after);
}

}  // namespace cupel
