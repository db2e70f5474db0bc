// From compared weights and configurations to findings, ranks and a verdict.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "cupel/checkpoint/preflight.h"

namespace cupel {
namespace {

using Status = WeightStatus;

// "layers.2.ffn.experts.5." of a routed expert's weight; empty for any other name.
std::string expert_prefix(const std::string& name) {
  constexpr std::string_view kExperts = ".ffn.experts.";
  const auto at = name.find(kExperts);
  if (at == std::string::npos) return {};
  const auto dot = name.find('.', at + kExperts.size());
  return dot == std::string::npos ? std::string() : name.substr(0, dot + 1);
}

std::string drop_dot(const std::string& prefix) {
  return prefix.substr(0, prefix.size() - 1);
}

std::string key_of(const WeightHash& hash) {
  return hash.weight.empty() ? std::string() : hash.weight + hash.scale;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

class Judge {
 public:
  Judge(PreflightReport& report, const CheckpointView& before, const CheckpointView& after)
      : report_(report), before_(before), after_(after) {}

  void run() {
    summarise_roles();
    find_faults();
    find_config_changes();
    find_side_files();
    find_structure();
    find_experts();
    find_patterns();
    find_outliers();
    find_drift();
    list_not_compared();
    std::ranges::stable_sort(report_.findings, [](const Finding& a, const Finding& b) {
      return std::tuple(a.severity, !a.target, -a.weight) <
             std::tuple(b.severity, !b.target, -b.weight);
    });
    decide();
  }

 private:
  void add(Severity severity, std::string what, std::string evidence,
           std::vector<std::string> tensors, double weight, bool target) {
    // What only a drafter sees never stands above the target's findings.
    if (!target && severity < Severity::kDrafter) {
      what = "drafter: " + what;
      severity = Severity::kDrafter;
    }
    report_.findings.push_back(
        {severity, std::move(what), std::move(evidence), std::move(tensors), weight, target});
  }

  void summarise_roles() {
    std::map<std::pair<bool, std::string>, RoleSummary> roles;
    std::map<std::pair<bool, std::string>, std::vector<double>> changes;
    for (const WeightChange& w : report_.weights) {
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
      medians_[key] = role.median_change;
      report_.roles.push_back(role);
    }
    std::ranges::stable_sort(report_.roles, [](const RoleSummary& a, const RoleSummary& b) {
      return std::tuple(!a.target, -a.max_change) < std::tuple(!b.target, -b.max_change);
    });
  }

  void find_faults() {
    for (const Fault& fault : report_.after.faults) {
      const bool old_too = std::ranges::any_of(
          report_.before.faults, [&](const Fault& other) { return other.what == fault.what; });
      add(Severity::kFault, fmt::format("{}: {}", fault.where, fault.what),
          old_too ? "OLD has the same fault" : "", {}, 1, fault.target);
    }
    if (!report_.before.faults.empty()) {
      const Fault& first = report_.before.faults.front();
      add(Severity::kNote, fmt::format("OLD has {}", plural(report_.before.faults.size(), "fault")),
          fmt::format("{}: {}", first.where, first.what), {}, 0, false);
    }
  }

  void find_config_changes() {
    for (const ConfigChange& c : report_.config) {
      Severity severity = Severity::kNote;
      if (c.touches == Touches::kTarget) severity = Severity::kStructure;
      if (c.touches == Touches::kUnknown) severity = Severity::kSuspect;
      if (c.touches == Touches::kDrafter) severity = Severity::kDrafter;
      const bool target = c.touches == Touches::kTarget || c.touches == Touches::kUnknown;
      add(severity, fmt::format("config {}: {} -> {}", c.field, c.before, c.after), c.meaning, {},
          1e6, target);
    }
    const auto& a = report_.before.facts;
    const auto& b = report_.after.facts;
    const auto& config_a = report_.before.config;
    const auto& config_b = report_.after.config;
    if (!a || !b || !config_a || !config_b) return;
    if (a->drafter != b->drafter || a->drafter_stages != b->drafter_stages) {
      add(Severity::kDrafter,
          fmt::format("drafter {} with {} -> {} with {}", drafter_name(a->drafter),
                      plural(static_cast<std::size_t>(a->drafter_stages), "stage"),
                      drafter_name(b->drafter),
                      plural(static_cast<std::size_t>(b->drafter_stages), "stage")),
          fmt::format("num_nextn_predict_layers {} -> {}", config_a->nextn_predict_layers,
                      config_b->nextn_predict_layers),
          {}, 2e6, false);
    }
  }

  void find_side_files() {
    if (before_.kind() == CheckpointView::Kind::kConfigOnly ||
        after_.kind() == CheckpointView::Kind::kConfigOnly) {
      return;
    }
    std::map<std::string, std::pair<std::string, std::string>> files;
    for (const SideFile& file : before_.side_files()) files[file.name].first = file.hash;
    for (const SideFile& file : after_.side_files()) files[file.name].second = file.hash;
    for (const auto& [name, hashes] : files) {
      if (hashes.first == hashes.second) continue;
      const std::string how = hashes.first.empty()    ? "added"
                              : hashes.second.empty() ? "removed"
                                                      : "other content";
      if (name.starts_with("tokenizer") || name.starts_with("encoding/") ||
          name.starts_with("chat_template")) {
        add(Severity::kStructure, fmt::format("{}: {}", name, how),
            "other prompts or other token ids", {}, 1, true);
      } else if (name == "generation_config.json") {
        add(Severity::kSuspect, fmt::format("{}: {}", name, how), "default sampling of a server",
            {}, 1, true);
      } else {
        add(Severity::kNote, fmt::format("{}: {}", name, how), "", {}, 0, true);
      }
    }
  }

  void find_structure() {
    struct Group {
      std::vector<std::string> names;
      std::string evidence;
    };
    // One finding for each kind of change and role.
    std::map<std::tuple<bool, Status, std::string>, Group> groups;
    std::map<std::tuple<bool, std::string, std::string, bool>, Group> forms;
    for (const WeightChange& w : report_.weights) {
      const bool structural = w.status == Status::kAdded || w.status == Status::kRemoved ||
                              w.status == Status::kReshaped || w.status == Status::kRenamed;
      if (structural) {
        Group& group = groups[{w.target, w.status, w.target ? w.role : "drafter"}];
        group.names.push_back(w.name);
        if (w.status == Status::kRenamed) {
          group.evidence = fmt::format("{} -> {}", w.name, w.renamed_to);
        } else if (w.status == Status::kReshaped) {
          group.evidence =
              fmt::format("{}: {} {} -> {} {}", w.name, w.old_form, shape_text(w.old_shape),
                          w.new_form, shape_text(w.new_shape));
        }
      }
      if (w.retyped && w.status != Status::kReshaped) {
        const std::string same = w.status == Status::kValueEqual ? ", same values" : "";
        Group& group =
            forms[{w.target, w.old_form + " -> " + w.new_form + same, w.role, w.new_math}];
        group.names.push_back(w.name);
      } else if (w.status == Status::kValueEqual) {
        // Scales of another power with codes that make up for it.
        const std::string first =
            w.diff.first_changed_scales.empty()
                ? ""
                : fmt::format(", first group {}", w.diff.first_changed_scales.front());
        add(Severity::kForm, fmt::format("{}: other bytes, same values", w.name),
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
      add(Severity::kStructure, std::move(what), group.evidence, std::move(group.names), weight,
          target);
    }
    for (auto& [key, group] : forms) {
      const auto& [target, form, role, new_math] = key;
      add(Severity::kForm,
          fmt::format("{}: {} stored {}", role, plural(group.names.size(), "weight"), form),
          new_math ? "activations are quantised in groups of another size" : "", group.names,
          static_cast<double>(group.names.size()), target);
    }
  }

  // Dead, duplicated and moved experts, from the hashes.
  void find_experts() {
    std::unordered_map<std::string, std::vector<const WeightChange*>> old_by_key;
    std::unordered_map<std::string, std::vector<const WeightChange*>> new_by_key;
    for (const WeightChange& w : report_.weights) {
      if (const auto key = key_of(w.old_hash); !key.empty()) old_by_key[key].push_back(&w);
      if (const auto key = key_of(w.new_hash); !key.empty()) new_by_key[key].push_back(&w);
    }
    std::map<std::string, std::vector<std::string>> dead;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> moved;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> doubled;
    for (const WeightChange& w : report_.weights) {
      if (w.status != Status::kChanged) continue;
      const std::string prefix = expert_prefix(w.name);
      const std::string unit = prefix.empty() ? w.name : prefix;
      const bool matrix = w.new_shape.size() == 2;
      if (w.diff.new_norm == 0 && w.diff.old_norm > 0 && w.diff.new_nan == 0) {
        dead[unit].push_back(w.name);
        explained_.insert(w.name);
        continue;
      }
      if (!matrix) continue;
      const auto other_unit = [&](const WeightChange* other) {
        const std::string p = expert_prefix(other->name);
        return p.empty() ? other->name : p;
      };
      if (const auto from = old_by_key.find(key_of(w.new_hash)); from != old_by_key.end()) {
        for (const WeightChange* other : from->second) {
          if (other->role != w.role || other->name == w.name) continue;
          moved[{unit, other_unit(other)}].push_back(w.name);
          explained_.insert(w.name);
          break;
        }
      }
      for (const WeightChange* other : new_by_key[key_of(w.new_hash)]) {
        if (other->name == w.name || other->role != w.role) continue;
        // Already alike in OLD: nothing new.
        if (key_of(other->old_hash) == key_of(w.old_hash)) continue;
        doubled[std::minmax(unit, other_unit(other))].push_back(w.name);
        explained_.insert(w.name);
        break;
      }
    }
    for (auto& [unit, names] : dead) {
      const bool expert = unit.back() == '.';
      add(Severity::kDamage,
          expert ? fmt::format("{}: zeroed, a dead expert ({} of its 3 weights)", drop_dot(unit),
                               names.size())
                 : fmt::format("{}: zeroed", unit),
          "every value is 0, in OLD they are not", names, 1e3 + static_cast<double>(names.size()),
          is_target(names));
    }
    for (auto& [pair, names] : doubled) {
      const auto& [a, b] = pair;
      add(Severity::kDamage,
          fmt::format("{} and {} hold the same bytes: a duplicate", trim(a), trim(b)),
          "in OLD they differ", names, 500, is_target(names));
    }
    for (auto& [pair, names] : moved) {
      const auto& [to, from] = pair;
      if (doubled.contains(std::minmax(to, from))) continue;
      const auto back = moved.find({from, to});
      if (back != moved.end()) {
        if (from < to) continue;  // said once
        std::vector<std::string> both = names;
        both.insert(both.end(), back->second.begin(), back->second.end());
        add(Severity::kDamage, fmt::format("{} and {}: swapped", trim(to), trim(from)),
            "each holds what the other held in OLD", both, 800, is_target(both));
      } else {
        add(Severity::kDamage, fmt::format("{} holds what {} held in OLD", trim(to), trim(from)),
            "equal bytes", names, 600, is_target(names));
      }
    }
  }

  void find_patterns() {
    for (const WeightChange& w : report_.weights) {
      const WeightDiff& d = w.diff;
      if (w.status != Status::kChanged) continue;
      if (d.new_nan > d.old_nan) {
        damage(w, "holds NaN or infinity", fmt::format("{} of {} values", d.new_nan, d.elements),
               2e3);
      }
      if (explained_.contains(w.name)) continue;
      if (d.nibbles_swapped) {
        damage(w, "nibbles swapped", "every byte has its two FP4 codes exchanged", 900);
      } else if (d.permuted) {
        const std::string rows = w.new_shape.size() > 1 ? "rows" : "elements";
        const std::string how = d.shift == 0
                                    ? fmt::format("the {} of OLD in another order", rows)
                                    : fmt::format("the {} of OLD, shifted by {}", rows, d.shift);
        damage(w, d.shift == 0 ? fmt::format("{} permuted", rows) : fmt::format("{} shifted", rows),
               how, 700);
      } else if (d.same_codes && d.scales_compared && d.changed_scales > 0) {
        suspect(w, fmt::format("{} of {} scales changed, codes equal", d.changed_scales, d.scales),
                fmt::format("exponents {:+g} to {:+g}, first number {}", d.lowest_exponent_change,
                            d.highest_exponent_change, d.first_changed_scales.front()),
                100);
      } else if (std::fabs(d.gain - 1) > 0.005 && d.gain_residual < 0.005) {
        suspect(w, fmt::format("scaled by {:.4g}", d.gain),
                fmt::format("cosine {:.6f}, what is left {:.2g}", d.cosine, d.gain_residual), 90);
      }
    }
  }

  // Weights that moved far more than others of their role, and rows that moved far more than
  // others of their weight.
  void find_outliers() {
    for (const WeightChange& w : report_.weights) {
      if (w.status != Status::kChanged || explained_.contains(w.name)) continue;
      const WeightDiff& d = w.diff;
      const double usual = medians_[{!w.target, w.role}];
      const RoleSummary& role = *std::ranges::find_if(report_.roles, [&](const RoleSummary& r) {
        return r.role == w.role && r.target == w.target;
      });
      // With most of the role unchanged, what did change stands out by itself.
      const bool rare = role.bit_equal > role.changed && role.weights >= 4;
      if (rare ||
          (role.changed >= 4 && d.relative_change > 3 * usual && d.relative_change > 0.02)) {
        add(Severity::kSuspect, fmt::format("{}: changed by {:.3g}", w.name, d.relative_change),
            rare ? fmt::format("{} of {} weights of its role ({}) are bit-equal", role.bit_equal,
                               role.weights, w.role)
                 : fmt::format("the median of its role ({}) is {:.3g}", w.role, usual),
            {w.name}, std::min(d.relative_change, 50.0), w.target);
      } else if (d.outlier_rows > 0) {
        add(Severity::kSuspect,
            fmt::format("{}: {} of {} rows stand out", w.name, d.outlier_rows,
                        w.new_shape.empty() ? 0 : w.new_shape.front()),
            fmt::format("row {} changed by {:.3g}, the median row by {:.3g}", d.worst_row,
                        d.worst_row_change, d.median_row_change),
            {w.name}, std::min(d.worst_row_change, 50.0) * 1e-3, w.target);
      }
    }
  }

  void find_drift() {
    for (const RoleSummary& role : report_.roles) {
      if (role.changed == 0) continue;
      add(Severity::kDrift,
          fmt::format("{}: {} of {} weights changed", role.role, role.changed, role.weights),
          fmt::format("relative change median {:.3g}, largest {:.3g} ({}), lowest cosine {:.4f}",
                      role.median_change, role.max_change, role.max_name, role.min_cosine),
          {}, std::min(role.max_change, 1e6), role.target);
    }
  }

  void list_not_compared() {
    const auto side = [&](const CheckpointView& view, std::string_view name) {
      if (view.kind() == CheckpointView::Kind::kConfigOnly) {
        report_.not_compared.push_back(fmt::format("tensors: {} is a configuration alone", name));
      } else if (view.kind() == CheckpointView::Kind::kHeadersOnly) {
        report_.not_compared.push_back(fmt::format("values: {} is looked at by its headers", name));
      }
    };
    side(before_, "OLD");
    side(after_, "NEW");
    std::size_t target = 0;
    for (const WeightChange& w : report_.weights)
      target += w.status == Status::kNotCompared && w.target;
    if (target > 0) {
      report_.not_compared.push_back(
          fmt::format("values of {} of the target", plural(target, "weight")));
    }
    if (!before_.config() || !after_.config()) {
      report_.not_compared.push_back("the tensor catalogue: a config.json is missing or refused");
    }
  }

  void decide() {
    std::size_t structural = 0;
    std::size_t moved = 0;
    std::size_t undecided = 0;
    std::size_t target = 0;
    std::size_t new_math = 0;
    for (const WeightChange& w : report_.weights) {
      if (!w.target) continue;
      ++target;
      moved += w.status == Status::kChanged;
      undecided += w.status == Status::kNotCompared;
      new_math += w.new_math;
    }
    std::string first;
    std::string suspects;
    for (const Finding& f : report_.findings) {
      if (!f.target) continue;
      if (f.severity <= Severity::kStructure) {
        ++structural;
        if (first.empty()) first = f.what;
      }
      if (f.severity == Severity::kDamage && suspects.empty()) suspects = f.what;
      if (f.severity == Severity::kSuspect && f.what.starts_with("config ")) ++undecided;
    }
    const bool values = before_.kind() == CheckpointView::Kind::kFull &&
                        after_.kind() == CheckpointView::Kind::kFull;
    if (structural > 0) {
      report_.verdict = Verdict::kStructural;
      report_.verdict_text = fmt::format("structural change: {}", first);
      if (structural > 1) report_.verdict_text += fmt::format(" (and {} more)", structural - 1);
    } else if (moved > 0 || new_math > 0) {
      report_.verdict = Verdict::kInert;
      report_.verdict_text = "structurally inert, numerics moved: ";
      if (!suspects.empty()) report_.verdict_text += suspects + "; ";
      report_.verdict_text +=
          moved > 0 ? fmt::format("{} of {} target weights hold other values", moved, target)
                    : fmt::format(
                          "{} expert weights have the same values in another form, with "
                          "activations quantised in other groups",
                          new_math);
    } else if (!values || undecided > 0 || !before_.config() || !after_.config()) {
      report_.verdict = Verdict::kUndecided;
      report_.verdict_text = "structurally inert as far as compared; not decided: " +
                             (report_.not_compared.empty() ? std::string("see the findings")
                                                           : report_.not_compared.front());
    } else {
      report_.verdict = Verdict::kIdentical;
      report_.verdict_text = fmt::format(
          "identical for the target: {} weights equal in value, no field that reaches it differs",
          target);
    }
  }

  void damage(const WeightChange& w, const std::string& what, std::string evidence, double weight) {
    explained_.insert(w.name);
    add(Severity::kDamage, fmt::format("{}: {}", w.name, what), std::move(evidence), {w.name},
        weight, w.target);
  }
  void suspect(const WeightChange& w, const std::string& what, std::string evidence,
               double weight) {
    explained_.insert(w.name);
    add(Severity::kSuspect, fmt::format("{}: {}", w.name, what), std::move(evidence), {w.name},
        weight, w.target);
  }

  static std::string trim(const std::string& unit) {
    return unit.back() == '.' ? drop_dot(unit) : unit;
  }
  static std::string_view drafter_name(DrafterKind kind) {
    switch (kind) {
      case DrafterKind::kNone:
        return "none";
      case DrafterKind::kMtp:
        return "MTP";
      case DrafterKind::kDspark:
        return "DSpark";
    }
    return "";
  }
  static bool is_target(const std::vector<std::string>& names) {
    return !names.front().starts_with("mtp.");
  }

  PreflightReport& report_;
  const CheckpointView& before_;
  const CheckpointView& after_;
  std::map<std::pair<bool, std::string>, double> medians_;
  std::set<std::string> explained_;  // weights whose change has a name already
};

}  // namespace

void judge_preflight(PreflightReport& report, const CheckpointView& before,
                     const CheckpointView& after) {
  Judge(report, before, after).run();
}

}  // namespace cupel
