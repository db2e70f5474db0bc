#include "cupel/assay/report.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "cupel/assay/outcomes.h"
#include "cupel/assay/report/format.h"

namespace cupel {
namespace {

constexpr std::size_t kColumns = 110;
constexpr std::size_t kNameColumns = 28;

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

// `text` cut from the left to at most `limit` characters. The ends of cell names differ (the
// backend), their beginnings rarely do.
std::string fit(std::string_view text, std::size_t limit) {
  auto characters =
      static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
  if (characters <= limit) return std::string(text);
  // The mark takes one column.
  for (; characters > limit - 1; --characters) {
    do {
      text.remove_prefix(1);
    } while (!text.empty() && !begins_character(text.front()));
  }
  return fmt::format("…{}", text);
}

// Breaks `text` at blanks into lines that begin with `indent`.
std::string wrap(std::string_view text, std::string_view indent) {
  std::string out;
  std::string line(indent);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      out += line + '\n';
      line = indent;
    }
    if (line.size() > indent.size()) line += ' ';
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + line + '\n';
}

std::string rate(double per_second) {
  return per_second > 0 ? fmt::format("{:.0f}", per_second) : "-";
}

std::string share(const std::optional<double>& value) {
  return value ? percent(*value) : "-";
}

std::string cell_table(const std::vector<CellRow>& cells) {
  constexpr auto kRow = "{:<28}  {:>8}  {:>13}  {:>6}  {:>7}  {:>9}  {:>7}  {:>7}  {:>7}\n";
  std::string out = fmt::format(kRow, "cell", "accuracy", "95 % interval", "strict", "invalid",
                                "truncated", "prompt", "output", "time");
  out += fmt::format("{:>38}  {:>13}  {:>6}  {:>7}  {:>9}  {:>7}  {:>7}\n", "%", "%", "%", "%", "%",
                     "tok/s", "tok/s");
  for (const CellRow& c : cells) {
    out +=
        fmt::format(kRow, fit(c.name, kNameColumns), percent(c.accuracy), range(c.accuracy95, 100),
                    share(c.strict_accuracy), share(c.invalid_share), share(c.truncated_share),
                    rate(c.prompt_tokens_per_second), rate(c.output_tokens_per_second),
                    c.prompt_tokens_per_second > 0 ? format_duration(c.seconds) : "-");
  }
  return out;
}

std::string comparison_table(const AssayReport& report) {
  std::string out =
      wrap(fmt::format("Compared item by item with {} at a margin of {:g} point{} "
                       "(loss in points; positive: worse than the reference; {}):",
                       report.reference, report.margin, report.margin == 1 ? "" : "s",
                       report.looks.empty()
                           ? "the ends of the 90 % interval decide"
                           : fmt::format("looks fixed at {} repeats share the 5 %; the bounds "
                                         "decide",
                                         list_items(report.looks))),
           "");
  constexpr auto kRow = "{:<28}  {:>5}  {:>6}  {:>6}  {:>14}  {:>14}  {:>7}  {}\n";
  out += fmt::format(kRow, "cell", "lost", "gained", "loss",
                     report.looks.empty() ? "90 % interval" : "bounds", "95 % interval", "p",
                     "verdict");
  for (const ComparisonRow& row : report.comparisons) {
    const auto& c = row.comparison;
    const auto& d = row.decision;
    out += fmt::format(kRow, fit(c.candidate, kNameColumns), c.lost, c.gained, points(c.loss),
                       range(d.interval90, 1), range(d.interval95_new, 1), p_value(d.p_regression),
                       verdict_name(d.verdict));
    for (const std::string& note : row.notes) out += wrap(note, "    ");
    for (const std::string& note : notes(c, d)) out += wrap(note, "    ");
  }
  const std::size_t family = verdicts(report).size();
  if (family > 1) {
    out += wrap(
        fmt::format("REGRESSION is held to 5 % over the {} comparisons{} together (Holm).", family,
                    family > report.comparisons.size() ? ", gating probes included," : ""),
        "");
  }
  return out;
}

}  // namespace

std::string render_report(const AssayReport& report) {
  std::string out = wrap(report.title, "");
  out += '\n' + cell_table(report.cells);
  if (!report.comparisons.empty()) out += '\n' + comparison_table(report);
  if (!report.interactions.empty()) {
    out += "\nInteraction: the loss under one backend less the loss under the other, in points:\n";
    for (const Interaction& i : report.interactions) {
      out += wrap(i.name, "  ");
      out += fmt::format("    {} +- {:.2f}, 95 % {}, one-sided p = {}\n", points(i.estimate),
                         i.standard_error, range(i.interval95, 1), p_value(i.p_one_sided));
    }
  }
  if (!report.records.empty()) {
    std::size_t width = 0;
    for (const auto& [cell, path] : report.records) width = std::max(width, cell.size());
    out += "\nRecords (one JSON line for each item and repeat):\n";
    for (const auto& [cell, path] : report.records) {
      out += fmt::format("  {:<{}}  {}\n", cell, std::min<std::size_t>(width, kNameColumns), path);
    }
  }
  return out;
}

}  // namespace cupel
