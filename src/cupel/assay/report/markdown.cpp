#include "cupel/assay/report/markdown.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/report/printable.h"

namespace cupel {
namespace {

constexpr std::size_t kLongestLine = 200;  // characters
// What is kept back for the lines that say what was left out, and for end tags.
constexpr std::size_t kReserve = 1024;

// Text up to a limit; blocks that do not fit are counted instead.
class BoundedText {
 public:
  explicit BoundedText(std::size_t limit) : limit_(limit - kReserve) {}

  std::size_t left() const { return limit_ - std::min(limit_, text_.size()); }
  void add(std::string_view block) {
    if (block.size() <= left()) text_ += block;
  }
  // A line that is kept whatever else is there: at most one a part.
  void add_line(const std::string& line) {
    text_ += fmt::format("\n{}, to stay within {} KiB.\n", line, (limit_ + kReserve) / 1024);
  }

  // As many of the blocks, from the first on, as fit after the heading; then how many did not.
  void add_list(std::string_view heading, const std::vector<std::string>& blocks,
                const std::string& singular) {
    if (blocks.empty()) return;
    std::size_t taken = 0;
    if (heading.size() <= left()) {
      text_ += heading;
      while (taken < blocks.size() && blocks[taken].size() <= left()) text_ += blocks[taken++];
    }
    if (taken < blocks.size()) {
      add_line(counted(blocks.size() - taken, singular) + " left out");
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::size_t limit_;
  std::string text_;
};

std::string_view mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "✅";
    case Verdict::kRegression:
      return "❌";
    case Verdict::kInconclusive:
      break;
  }
  return "❔";
}

std::string verdict_row(const ComparisonRow& row) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  return fmt::format("| {} {} | {} | {} | {} | {} | {} | {} | {} |\n", mark(d.verdict),
                     verdict_name(d.verdict), markdown_text(c.candidate), points(c.loss),
                     range(d.interval90, 1), range(d.interval95_new, 1), c.lost, c.gained,
                     markdown_text(p_value(d.p_regression)));
}

std::string cell_row_text(const CellRow& c) {
  const auto share = [](const std::optional<double>& s) { return s ? percent(*s) : "-"; };
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(c.name),
                     c.repeats, percent(c.accuracy), range(c.accuracy95, 100),
                     share(c.invalid_share), share(c.truncated_share),
                     c.noise ? fmt::format("{:.0f}, {:.0f}..{:.0f}", c.noise->unstable,
                                           c.noise->unstable95.low, c.noise->unstable95.high)
                             : "-",
                     c.noise ? points(c.noise->deviation_by_runs) : "-");
}

std::vector<std::string> note_lines(const AssayReport& report) {
  std::vector<std::string> lines;
  const auto append = [&](const std::string& name, const std::vector<std::string>& sentences) {
    for (const std::string& s : sentences) {
      lines.push_back(fmt::format("- {}: {}\n", markdown_text(name), markdown_text(s)));
    }
  };
  for (const ComparisonRow& row : report.comparisons) {
    append(row.comparison.candidate, row.notes);
    append(row.comparison.candidate, notes(row.comparison, row.decision));
  }
  for (const CellRow& c : report.cells) {
    if (c.noise) append(c.name, notes(*c.noise));
  }
  return lines;
}

std::string part(const std::string& text, bool cut) {
  return text + (cut ? "…" : text.empty() ? "(ends here)" : "");
}

std::string flip_block(const Flip& f) {
  std::string out =
      fmt::format("\n<details><summary>Item {}, {}", f.item, f.lost ? "lost" : "gained");
  if (f.token) out += fmt::format(", texts part at token {}", *f.token);
  out += fmt::format(", near-tie: {}</summary>\n\n", near_tie_name(f.near_tie));
  if (!f.text.before.empty()) {
    out += "Both:\n" + markdown_fence((f.text.before_cut ? "…" : "") + f.text.before);
  }
  out += "Reference, from there on: " + markdown_text(margin_sentence(f.reference, f.token)) +
         '\n' + markdown_fence(part(f.text.reference, f.text.reference_cut));
  out += "Candidate, from there on: " + markdown_text(margin_sentence(f.candidate, f.token)) +
         '\n' + markdown_fence(part(f.text.candidate, f.text.candidate_cut));
  return out + "</details>\n";
}

// In turn from every comparison, so that the last is not crowded out.
void add_flips(const AssayReport& report, BoundedText& out) {
  std::vector<std::string> sections(report.comparisons.size());
  std::size_t bytes = 0;
  std::size_t left_out = 0;
  std::size_t most = 0;
  for (const ComparisonRow& row : report.comparisons) most = std::max(most, row.flips.size());
  for (std::size_t k = 0; k < most; ++k) {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const ComparisonRow& row = report.comparisons[i];
      if (k >= row.flips.size()) continue;
      std::string block;
      if (k == 0) {
        block = fmt::format("\n### Items that flipped: {} ({} lost, {} gained)\n",
                            markdown_text(row.comparison.candidate), row.comparison.lost,
                            row.comparison.gained);
      }
      block += flip_block(row.flips[k]);
      // Once one was left out, all after it are: "the first so many".
      if (left_out > 0 || bytes + block.size() > out.left()) {
        ++left_out;
      } else {
        bytes += block.size();
        sections[i] += block;
      }
    }
  }
  for (const std::string& section : sections) out.add(section);
  if (left_out > 0) {
    out.add_line(fmt::format("{} left out; the JSON report and the records have them all",
                             counted(left_out, "flipped item")));
  }
}

}  // namespace

std::string markdown_text(std::string_view text) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : printable(text)) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins && ++characters > kLongestLine) return out + "…";
    if (c == '\n' || c == '\t') {
      out += ' ';
      continue;
    }
    // Entities, since a backslash does not work in every place (a table's | in code, HTML).
    if (std::string_view("\\`*_{}[]<>()#+!|&~@:$").find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string markdown_fence(std::string_view text) {
  const std::string shown = printable(text);
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fmt::format("\n{}text\n{}\n{}\n\n", fence, shown, fence);
}

std::string render_markdown(const AssayReport& report, std::size_t limit) {
  BoundedText out(std::max<std::size_t>(limit, 4096));
  const Verdict overall = overall_verdict(report);
  out.add(fmt::format("## {} {}\n\n{}\n", mark(overall), verdict_name(overall),
                      markdown_text(report.title)));
  std::vector<std::string> rows;
  rows.reserve(report.comparisons.size());
  for (const ComparisonRow& row : report.comparisons) rows.push_back(verdict_row(row));
  out.add_list(
      fmt::format("\nLoss against {} in points, margin {:g}; PASS if the upper bound is below the "
                  "margin, REGRESSION if the lower is above 0.\n\n"
                  "| verdict | cell | loss | bounds | 95 % | lost | gained | p |\n"
                  "|---|---|--:|--:|--:|--:|--:|--:|\n",
                  markdown_text(report.reference), report.margin),
      rows, "comparison");
  rows.clear();
  for (const ProbeComparison& p : report.probes) {
    rows.push_back(fmt::format("- {} {}\n", p.verdict ? mark(*p.verdict) : "",
                               markdown_text(p.candidate + ": " + probe_sentence(p))));
  }
  out.add_list("\nProbes compared prompt by prompt; one gates where a margin was declared:\n\n",
               rows, "probe");
  rows.clear();
  for (const CellRow& c : report.cells) rows.push_back(cell_row_text(c));
  out.add_list(
      "\n| cell | repeats | accuracy % | 95 % | invalid % | truncated % | unstable u, 95 % | "
      "run sd |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
      rows, "cell");
  rows.clear();
  for (const Interaction& i : report.interactions) {
    rows.push_back(fmt::format("- {}: {} ± {:.2f}, 95 % {}, one-sided {}\n", markdown_text(i.name),
                               points(i.estimate), i.standard_error, range(i.interval95, 1),
                               markdown_text(p_is(i.p_one_sided))));
  }
  out.add_list("\nInteraction, the loss under one backend less the loss under the other:\n\n", rows,
               "interaction");
  out.add_list("\n", note_lines(report), "note");
  add_flips(report, out);
  return out.take();
}

}  // namespace cupel
