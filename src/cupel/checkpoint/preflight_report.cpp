// The report as text and as JSON.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/checkpoint/preflight.h"

namespace cupel {
namespace {

using Json = nlohmann::ordered_json;

std::string_view kind_name(CheckpointView::Kind kind) {
  switch (kind) {
    case CheckpointView::Kind::kConfigOnly:
      return "configuration only";
    case CheckpointView::Kind::kHeadersOnly:
      return "headers only";
    case CheckpointView::Kind::kFull:
      return "full";
  }
  return "";
}

std::string_view drafter_text(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::kNone:
      return "none";
    case DrafterKind::kMtp:
      return "mtp";
    case DrafterKind::kDspark:
      return "dspark";
  }
  return "";
}

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

// One row of the table of facts.
struct FactRow {
  std::string name;
  std::string before;
  std::string after;
};

std::string layers_text(const ConfigFacts& f) {
  return fmt::format("{} sliding, {} ratio-4, {} ratio-128", f.sliding_only_layers, f.sparse_layers,
                     f.dense_entries_layers);
}

std::vector<FactRow> fact_rows(const PreflightReport& report,
                               const PreflightReportOptions& options) {
  std::vector<FactRow> rows;
  const auto side = [&](const std::string& name, const auto& text) {
    const auto cell = [&](const PreflightSide& s) {
      return s.facts ? std::string(text(*s.facts, *s.config)) : std::string("-");
    };
    rows.push_back({name, cell(report.before), cell(report.after)});
  };
  using F = ConfigFacts;
  using C = ModelConfig;
  side("main layers", [](const F& f, const C&) { return layers_text(f); });
  side("compress_ratios entries",
       [](const F& f, const C&) { return fmt::format("{}", f.ratio_entries); });
  side("drafter", [](const F& f, const C& c) {
    return fmt::format("{}, {} stage{} (num_nextn_predict_layers {})", drafter_text(f.drafter),
                       f.drafter_stages, f.drafter_stages == 1 ? "" : "s", c.nextn_predict_layers);
  });
  side("target tensors, bytes", [](const F& f, const C&) {
    return fmt::format("{}, {}", f.target_tensors, f.target_bytes);
  });
  side("routed experts", [](const F& f, const C& c) {
    return fmt::format("{}, {} bytes", expert_dtype_name(c.expert_dtype), f.expert_bytes);
  });
  side("a target-only load skips", [](const F& f, const C&) {
    return fmt::format("{} tensors, {} bytes", f.drafter_tensors, f.drafter_bytes);
  });
  const auto& caches = report.after.facts    ? report.after.facts->caches
                       : report.before.facts ? report.before.facts->caches
                                             : std::vector<ConfigFacts::Cache>();
  for (std::size_t i = 0; i < caches.size(); ++i) {
    side(fmt::format("cache, {}", caches[i].backend), [&](const F& f, const C&) {
      return fmt::format("{:.1f} B/token + {} B", f.caches[i].bytes_per_token,
                         f.caches[i].window_bytes);
    });
  }
  for (const double gib : options.gpu_gib) {
    side(fmt::format("GPUs of {:g} GiB, full context", gib), [&](const F& f, const C& c) {
      return fmt::format("{}", gpus_needed(f, gib, c.max_position_embeddings));
    });
  }
  side("indexer selects from", [](const F& f, const C&) {
    return fmt::format("{} visible tokens on", f.indexer_idle_below);
  });
  return rows;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : std::string("-");
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

std::string side_line(const PreflightSide& side) {
  std::string out = fmt::format("{}\n        {}", side.path, kind_name(side.kind));
  if (side.kind != CheckpointView::Kind::kConfigOnly) {
    out +=
        fmt::format(", {} shards, {} tensors, {} bytes; drafter {} tensors, {} bytes", side.shards,
                    side.tensors, side.bytes, side.drafter_tensors, side.drafter_bytes);
  }
  return out + "\n";
}

std::string weights_table(const PreflightReport& report, int top) {
  std::vector<const WeightChange*> changed;
  for (const WeightChange& w : report.weights) {
    if (w.status == WeightStatus::kChanged) changed.push_back(&w);
  }
  if (changed.empty()) return "";
  std::ranges::stable_sort(changed, [](const WeightChange* a, const WeightChange* b) {
    return std::pair(!a->target, -a->diff.relative_change) <
           std::pair(!b->target, -b->diff.relative_change);
  });
  std::string out =
      fmt::format("\nmost changed weights\n  {:<46} {:>8} {:>8} {:>9} {:>15} {:>13}\n", "",
                  "change", "cosine", "amax 2^", "scales differ", "saturated");
  for (std::size_t i = 0; i < changed.size() && i < static_cast<std::size_t>(top); ++i) {
    const WeightDiff& d = changed[i]->diff;
    out +=
        fmt::format("  {:<46} {:>8} {:>8.5f} {:>9} {:>15} {:>13}\n", changed[i]->name,
                    number(d.relative_change), d.cosine, number(d.max_amax_octaves),
                    d.scales_compared ? fmt::format("{}/{}", d.changed_scales, d.scales) : "-",
                    d.scales_compared ? fmt::format("{:.2f}->{:.2f}%", 100 * d.old_codes.saturated,
                                                    100 * d.new_codes.saturated)
                                      : "-");
  }
  if (changed.size() > static_cast<std::size_t>(top)) {
    out += fmt::format("  … {} more in the JSON\n", changed.size() - static_cast<std::size_t>(top));
  }
  return out;
}

}  // namespace

std::string preflight_text(const PreflightReport& report, const PreflightReportOptions& options) {
  const auto top = static_cast<std::size_t>(options.top);
  std::string out = fmt::format("OLD     {}NEW     {}\nverdict {}\n", side_line(report.before),
                                side_line(report.after), report.verdict_text);
  out += "\nfindings\n";
  if (report.findings.empty()) out += "  none\n";
  for (std::size_t i = 0; i < report.findings.size() && i < top; ++i) {
    const Finding& f = report.findings[i];
    out += fmt::format("  {:>3}. {:<9} {}\n", i + 1, severity_name(f.severity), f.what);
    if (!f.evidence.empty()) out += fmt::format("                 {}\n", f.evidence);
  }
  if (report.findings.size() > top) {
    out += fmt::format("  … {} more in the JSON\n", report.findings.size() - top);
  }
  if (!report.config.empty()) {
    out += "\nconfig fields that differ\n";
    for (const ConfigChange& c : report.config) {
      out += fmt::format("  {:<8} {}: {} -> {}\n           {}\n", touches_name(c.touches), c.field,
                         c.before, c.after, c.meaning);
    }
  }
  out += fmt::format("\nfacts                           {:<42} NEW\n", "OLD");
  for (const FactRow& row : fact_rows(report, options)) {
    out += fmt::format("  {:<29} {:<42} {}\n", row.name, row.before,
                       row.before == row.after ? "same" : row.after);
  }
  if (report.same_main_ratios) {
    out += fmt::format("  ratios of the main layers     {}\n",
                       *report.same_main_ratios ? "equal" : "differ");
  }
  if (!report.weights.empty()) {
    out +=
        fmt::format("\nweights by role\n  {:<32} {:>6} {:>9} {:>11} {:>7} {:>6} {:>9} {:>9}\n", "",
                    "all", "bit-equal", "value-equal", "changed", "other", "median", "largest");
    for (const RoleSummary& r : report.roles) {
      out += fmt::format("  {:<32} {:>6} {:>9} {:>11} {:>7} {:>6} {:>9} {:>9}\n", r.role, r.weights,
                         r.bit_equal, r.value_equal, r.changed, r.other,
                         r.changed > 0 ? number(r.median_change) : "-",
                         r.changed > 0 ? number(r.max_change) : "-");
    }
  }
  out += weights_table(report, options.top);
  if (report.numerics) out += "\nnumerics\n" + report.numerics->text;
  if (!report.not_compared.empty()) {
    out += "\nnot compared\n";
    for (const std::string& line : report.not_compared) out += fmt::format("  {}\n", line);
  }
  return out;
}

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
