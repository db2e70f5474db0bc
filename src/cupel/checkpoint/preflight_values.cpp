// Findings in the values: experts that died or moved, patterns that training does not make,
// outliers, drift.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "cupel/checkpoint/preflight_judge.h"

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

class ValueFindings {
 public:
  explicit ValueFindings(PreflightReport& report) : report_(report) {}

  void run() {
    find_experts();
    find_patterns();
    find_outliers();
    find_drift();
  }

 private:
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
      const RoleSummary& role = *std::ranges::find_if(report_.roles, [&](const RoleSummary& r) {
        return r.role == w.role && r.target == w.target;
      });
      const double usual = role.median_change;
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
  static bool is_target(const std::vector<std::string>& names) {
    return !names.front().starts_with("mtp.");
  }

  void add(Severity severity, std::string what, std::string evidence,
           std::vector<std::string> tensors, double weight, bool target) {
    add_finding(report_, severity, std::move(what), std::move(evidence), std::move(tensors), weight,
                target);
  }

  PreflightReport& report_;
  std::set<std::string> explained_;  // weights whose change has a name already
};

}  // namespace

void find_value_changes(PreflightReport& report) {
  ValueFindings(report).run();
}

}  // namespace cupel
