// Findings of structure: what a load, the network's shape and the prompts depend on.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "cupel/checkpoint/preflight_judge.h"

namespace cupel {
namespace {

using Status = WeightStatus;

void find_faults(PreflightReport& report) {
  for (const Fault& fault : report.after.faults) {
    const bool old_too = std::ranges::any_of(
        report.before.faults, [&](const Fault& other) { return other.what == fault.what; });
    add_finding(report, Severity::kFault, fmt::format("{}: {}", fault.where, fault.what),
                old_too ? "OLD has the same fault" : "", {}, 1, fault.target);
  }
  if (!report.before.faults.empty()) {
    const Fault& first = report.before.faults.front();
    add_finding(report, Severity::kNote,
                fmt::format("OLD has {}", plural(report.before.faults.size(), "fault")),
                fmt::format("{}: {}", first.where, first.what), {}, 0, false);
  }
}

void find_config_changes(PreflightReport& report) {
  for (const ConfigChange& c : report.config) {
    Severity severity = Severity::kNote;
    if (c.touches == Touches::kTarget) severity = Severity::kStructure;
    if (c.touches == Touches::kUnknown) severity = Severity::kSuspect;
    if (c.touches == Touches::kDrafter) severity = Severity::kDrafter;
    const bool target = c.touches == Touches::kTarget || c.touches == Touches::kUnknown;
    add_finding(report, severity, fmt::format("config {}: {} -> {}", c.field, c.before, c.after),
                c.meaning, {}, 1e6, target);
  }
  const auto& a = report.before.facts;
  const auto& b = report.after.facts;
  const auto& config_a = report.before.config;
  const auto& config_b = report.after.config;
  if (!a || !b || !config_a || !config_b) return;
  if (a->drafter != b->drafter || a->drafter_stages != b->drafter_stages) {
    add_finding(report, Severity::kDrafter,
                fmt::format("drafter {} with {} -> {} with {}", drafter_name(a->drafter),
                            plural(static_cast<std::size_t>(a->drafter_stages), "stage"),
                            drafter_name(b->drafter),
                            plural(static_cast<std::size_t>(b->drafter_stages), "stage")),
                fmt::format("num_nextn_predict_layers {} -> {}", config_a->nextn_predict_layers,
                            config_b->nextn_predict_layers),
                {}, 2e6, false);
  }
}

void find_side_files(PreflightReport& report, const CheckpointView& before,
                     const CheckpointView& after) {
  if (before.kind() == CheckpointView::Kind::kConfigOnly ||
      after.kind() == CheckpointView::Kind::kConfigOnly) {
    return;
  }
  std::map<std::string, std::pair<std::string, std::string>> files;
  for (const SideFile& file : before.side_files()) files[file.name].first = file.hash;
  for (const SideFile& file : after.side_files()) files[file.name].second = file.hash;
  for (const auto& [name, hashes] : files) {
    if (hashes.first == hashes.second) continue;
    const std::string how = hashes.first.empty()    ? "added"
                            : hashes.second.empty() ? "removed"
                                                    : "other content";
    if (name.starts_with("tokenizer") || name.starts_with("encoding/") ||
        name.starts_with("chat_template")) {
      add_finding(report, Severity::kStructure, fmt::format("{}: {}", name, how),
                  "other prompts or other token ids", {}, 1, true);
    } else if (name == "generation_config.json") {
      add_finding(report, Severity::kSuspect, fmt::format("{}: {}", name, how),
                  "default sampling of a server", {}, 1, true);
    } else {
      add_finding(report, Severity::kNote, fmt::format("{}: {}", name, how), "", {}, 0, true);
    }
  }
}

void find_weights(PreflightReport& report) {
  struct Group {
    std::vector<std::string> names;
    std::string evidence;
  };
  // One finding for each kind of change and role.
  std::map<std::tuple<bool, Status, std::string>, Group> groups;
  std::map<std::tuple<bool, std::string, std::string, bool>, Group> forms;
  for (const WeightChange& w : report.weights) {
    const bool structural = w.status == Status::kAdded || w.status == Status::kRemoved ||
                            w.status == Status::kReshaped || w.status == Status::kRenamed;
    if (structural) {
      Group& group = groups[{w.target, w.status, w.target ? w.role : "drafter"}];
      group.names.push_back(w.name);
      if (w.status == Status::kRenamed) {
        group.evidence = fmt::format("{} -> {}", w.name, w.renamed_to);
      } else if (w.status == Status::kReshaped) {
        group.evidence = fmt::format("{}: {} {} -> {} {}", w.name, w.old_form,
                                     shape_text(w.old_shape), w.new_form, shape_text(w.new_shape));
      }
    }
    if (w.retyped && w.status != Status::kReshaped) {
      const std::string same = w.status == Status::kValueEqual ? ", same values" : "";
      Group& group = forms[{w.target, w.old_form + " -> " + w.new_form + same, w.role, w.new_math}];
      group.names.push_back(w.name);
    } else if (w.status == Status::kValueEqual) {
      // Scales of another power with codes that make up for it.
      const std::string first =
          w.diff.first_changed_scales.empty()
              ? ""
              : fmt::format(", first group {}", w.diff.first_changed_scales.front());
      add_finding(
          report, Severity::kForm, fmt::format("{}: other bytes, same values", w.name),
          fmt::format("{} of {} scales differ{}", w.diff.changed_scales, w.diff.scales, first),
          {w.name}, static_cast<double>(w.diff.changed_scales), w.target);
    }
  }
  for (auto& [key, group] : groups) {
    const auto& [target, status, role] = key;
    std::string what =
        fmt::format("{} {}: {}", status_name(status), plural(group.names.size(), "weight"), role);
    const double weight = static_cast<double>(group.names.size());
    if (group.evidence.empty()) group.evidence = group.names.front();
    add_finding(report, Severity::kStructure, std::move(what), group.evidence,
                std::move(group.names), weight, target);
  }
  for (auto& [key, group] : forms) {
    const auto& [target, form, role, new_math] = key;
    add_finding(report, Severity::kForm,
                fmt::format("{}: {} stored {}", role, plural(group.names.size(), "weight"), form),
                new_math ? "activations are quantised in groups of another size" : "", group.names,
                static_cast<double>(group.names.size()), target);
  }
}

}  // namespace

void find_structure(PreflightReport& report, const CheckpointView& before,
                    const CheckpointView& after) {
  find_faults(report);
  find_config_changes(report);
  find_side_files(report, before, after);
  find_weights(report);
}

}  // namespace cupel
