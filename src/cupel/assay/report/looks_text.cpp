#include "cupel/assay/report/looks_text.h"

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/format.h"

namespace cupel {
namespace {

std::vector<std::string> sentences(const CellRow& c) {
  std::vector<std::string> lines;
  if (c.noise) lines = notes(*c.noise);
  if (c.same_text && c.same_text->differing == 0) {
    lines.push_back(
        fmt::format("No text differed in {} independent pairs: at most {:.3g} % of "
                    "pairs differ (95 %).",
                    c.same_text->independent_pairs, 100 * c.same_text->rate95.high));
  }
  if (c.same_answer) {
    lines.push_back(fmt::format("The same answer in {} % of pairs of repeats.",
                                percent(c.same_answer->total_agreement())));
  }
  return lines;
}

std::string cell_table(const AssayReport& report) {
  std::string out =
      fmt::format("{:>8}  {:>9}  {:>14}  {:>15}  {:>19}  {:>13}  {}\n", "repeats", "accuracy",
                  "95 % interval", "same text, 95 %", "unstable u, 95 %", "run sd, seen", "cell");
  for (const CellRow& c : report.cells) {
    std::string same = "-";
    std::string unstable = "-";
    std::string deviation = "-";
    if (c.same_text) {
      same = fmt::format("{}, >={}", percent(c.same_text->total_agreement()),
                         percent(1 - c.same_text->rate95.high));
    }
    if (c.noise) {
      const RunNoise& n = *c.noise;
      unstable =
          fmt::format("{:.0f}, {:.0f}..{:.0f}", n.unstable, n.unstable95.low, n.unstable95.high);
      deviation = fmt::format("{:.2f}, {:.2f}", n.deviation_by_items, n.deviation_by_runs);
    }
    out += fmt::format("{:>8}  {:>9}  {:>14}  {:>15}  {:>19}  {:>13}  {}\n", c.repeats,
                       percent(c.accuracy), range(c.accuracy95, 100), same, unstable, deviation,
                       c.name);
    for (const std::string& line : sentences(c)) out += fmt::format("          {}\n", line);
  }
  return out;
}

std::string comparison_text(const ComparisonRow& row) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  std::string out = fmt::format(
      "{}\n  {:<13} loss {}, {} lost, {} gained; bounds at {:.2f} % each side: {} to {}; 95 % {} "
      "to {}; p = {}\n",
      c.candidate, verdict_name(d.verdict), points(c.loss), c.lost, c.gained, 100 * row.level,
      points(d.interval90.low), points(d.interval90.high), points(d.interval95_new.low),
      points(d.interval95_new.high), p_value(d.p_regression));
  for (const std::string& note : row.notes) out += fmt::format("    {}\n", note);
  for (const std::string& note : notes(c, d)) out += fmt::format("    {}\n", note);
  return out;
}

}  // namespace

std::string render_looks(const AssayReport& report) {
  std::string out = report.title + "\n\n" + cell_table(report) + '\n';
  for (const ComparisonRow& row : report.comparisons) out += comparison_text(row);
  if (report.comparisons.size() > 1) {
    out += fmt::format("REGRESSION is held to 5 % over the {} comparisons together (Holm).\n",
                       report.comparisons.size());
  }
  return out;
}

}  // namespace cupel
