// The report as text.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/checkpoint/preflight_facts.h"

namespace cupel {
namespace {

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : std::string("-");
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

}  // namespace cupel
