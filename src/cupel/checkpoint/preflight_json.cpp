// The report as JSON.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/checkpoint/preflight_facts.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kInert:
      return "inert, numerics moved";
    case Verdict::kUndecided:
      return "undecided";
    case Verdict::kStructural:
      return "structural change";
  }
  return "";
}

// JSON has no infinity.
Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json shares_json(const CodeShares& shares) {
  return {{"zero", shares.zero}, {"subnormal", shares.subnormal}, {"saturated", shares.saturated}};
}

Json diff_json(const WeightDiff& d) {
  return {{"relative_change", finite(d.relative_change)},
          {"cosine", finite(d.cosine)},
          {"gain", finite(d.gain)},
          {"gain_residual", finite(d.gain_residual)},
          {"max_abs_change", d.max_abs_change},
          {"old_norm", d.old_norm},
          {"new_norm", d.new_norm},
          {"elements", d.elements},
          {"changed_elements", d.changed_elements},
          {"not_finite", {{"old", d.old_nan}, {"new", d.new_nan}}},
          {"blocks", d.blocks},
          {"changed_block_amax", d.changed_amax},
          {"max_block_amax_octaves", d.max_amax_octaves},
          {"scales", d.scales},
          {"changed_scales", d.changed_scales},
          {"first_changed_scales", d.first_changed_scales},
          {"scale_exponent_change", {d.lowest_exponent_change, d.highest_exponent_change}},
          {"codes", {{"old", shares_json(d.old_codes)}, {"new", shares_json(d.new_codes)}}},
          {"outlier_rows", d.outlier_rows},
          {"worst_row", d.worst_row},
          {"worst_row_change", finite(d.worst_row_change)},
          {"median_row_change", finite(d.median_row_change)}};
}

Json weight_json(const WeightChange& w) {
  Json out = {{"name", w.name},
              {"role", w.role},
              {"target", w.target},
              {"status", status_name(w.status)},
              {"old",
               {{"form", w.old_form},
                {"shape", w.old_shape},
                {"hash", w.old_hash.weight},
                {"scale_hash", w.old_hash.scale}}},
              {"new",
               {{"form", w.new_form},
                {"shape", w.new_shape},
                {"hash", w.new_hash.weight},
                {"scale_hash", w.new_hash.scale}}}};
  if (!w.renamed_to.empty()) out["renamed_to"] = w.renamed_to;
  if (w.status == WeightStatus::kChanged || w.status == WeightStatus::kValueEqual) {
    out["diff"] = diff_json(w.diff);
  }
  return out;
}

Json side_json(const PreflightSide& side) {
  Json faults = Json::array();
  for (const Fault& fault : side.faults) {
    faults.push_back({{"where", fault.where}, {"what", fault.what}, {"target", fault.target}});
  }
  return {{"path", side.path},
          {"kind", kind_name(side.kind)},
          {"shards", side.shards},
          {"tensors", side.tensors},
          {"bytes", side.bytes},
          {"drafter_tensors", side.drafter_tensors},
          {"drafter_bytes", side.drafter_bytes},
          {"faults", faults}};
}

}  // namespace

std::string preflight_json(const PreflightReport& report, const PreflightReportOptions& options) {
  Json findings = Json::array();
  for (const Finding& f : report.findings) {
    findings.push_back({{"severity", severity_name(f.severity)},
                        {"what", f.what},
                        {"evidence", f.evidence},
                        {"target", f.target},
                        {"tensors", f.tensors}});
  }
  Json config = Json::array();
  for (const ConfigChange& c : report.config) {
    config.push_back({{"field", c.field},
                      {"old", c.before},
                      {"new", c.after},
                      {"touches", touches_name(c.touches)},
                      {"meaning", c.meaning}});
  }
  Json facts = Json::object();
  for (const FactRow& row : fact_rows(report, options)) {
    facts[row.name] = {{"old", row.before}, {"new", row.after}};
  }
  Json roles = Json::array();
  for (const RoleSummary& r : report.roles) {
    roles.push_back({{"role", r.role},
                     {"target", r.target},
                     {"weights", r.weights},
                     {"bit_equal", r.bit_equal},
                     {"value_equal", r.value_equal},
                     {"changed", r.changed},
                     {"other", r.other},
                     {"median_change", finite(r.median_change)},
                     {"max_change", finite(r.max_change)},
                     {"max_name", r.max_name},
                     {"min_cosine", finite(r.min_cosine)}});
  }
  Json weights = Json::array();
  for (const WeightChange& w : report.weights) {
    if (w.status != WeightStatus::kBitEqual) weights.push_back(weight_json(w));
  }
  Json out = {{"verdict", verdict_name(report.verdict)},
              {"verdict_text", report.verdict_text},
              {"exit_code", static_cast<int>(exit_code(report.verdict))},
              {"old", side_json(report.before)},
              {"new", side_json(report.after)},
              {"findings", findings},
              {"config", config},
              {"facts", facts},
              {"same_main_ratios",
               report.same_main_ratios ? Json(*report.same_main_ratios) : Json(nullptr)},
              {"roles", roles},
              {"weights", weights},
              {"not_compared", report.not_compared}};
  if (report.numerics) out["numerics"] = Json::parse(report.numerics->json);
  // A path need not be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cupel
