#include <algorithm>

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/report/html.h"
#include "cupel/assay/report/html_parts.h"
#include "cupel/assay/report/printable.h"
#include "cupel/assay/report/xml_text.h"

namespace cupel {
namespace {

// The first of a comparison are unfolded.
constexpr std::size_t kOpen = 3;

std::string tie_text(NearTie near_tie) {
  switch (near_tie) {
    case NearTie::kYes:
      return "near-tie";
    case NearTie::kNo:
      return "no near-tie";
    case NearTie::kUnknown:
      break;
  }
  return "margin not known";
}

// The text from the difference on, its first character marked.
void add_text_from_difference(pugi::xml_node block, const std::string& text, bool cut, bool same) {
  if (same) return;
  const std::string_view first = first_character(text);
  if (first.empty()) {
    add(block, "mark", {{"class", "end"}}, "ends here");
    return;
  }
  // Blanks are marked by what stands for them.
  std::string shown(first);
  if (first == "\n") shown = "↵\n";
  if (first == " ") shown = "␣";
  if (first == "\t") shown = "⇥";
  add(block, "mark", {}, shown);
  add_text(block, text.substr(first.size()) + (cut ? " …" : ""));
}

void add_answer(pugi::xml_node pair, const char* arm, const std::string& cell, const Flip& f,
                const FlippedAnswer& answer, const std::string& text, bool cut) {
  pugi::xml_node figure = add(pair, "figure", {{"class", answer.correct ? "right" : "wrong"}});
  pugi::xml_node caption = add(figure, "figcaption");
  add(caption, "strong", {}, answer.correct ? "right" : "wrong");
  std::string about = fmt::format(" {}: {}", arm, cell);
  if (answer.extracted) about += fmt::format(", answer {}", *answer.extracted);
  if (answer.repeat > 0) about += fmt::format(", repeat {}", answer.repeat);
  if (answer.stop_reason == StopReason::kLength) about += ", truncated";
  add_text(caption, about);
  pugi::xml_node block = add(figure, "pre", {{"tabindex", "0"}, {"dir", "auto"}});
  // Also where nothing is common: a newline right after <pre> itself would be dropped.
  add(block, "span", {{"class", "common"}}, (f.text.before_cut ? "… " : "") + f.text.before);
  add_text_from_difference(block, text, cut, f.text.same);
  add(figure, "p", {{"class", "small"}}, margin_sentence(answer, f.token));
}

void add_flip(pugi::xml_node parent, const ComparisonRow& row, const Flip& f, bool open) {
  pugi::xml_node details = add(parent, "details", {{"class", "flip"}});
  if (open) details.append_attribute("open").set_value("open");
  pugi::xml_node summary = add(details, "summary");
  add(summary, "strong", {}, fmt::format("Item {}", f.item));
  add(summary, "span", {{"class", f.lost ? "tag lost" : "tag gained"}}, f.lost ? "lost" : "gained");
  std::string where = f.text.same ? "same text" : fmt::format("byte {}", f.text.offset);
  if (f.token) where = fmt::format("token {}", *f.token);
  add(summary, "span", {{"class", "where"}},
      fmt::format("{}{}, {}{}", f.text.same ? "" : "part at ", where, tie_text(f.near_tie),
                  f.gold ? fmt::format(", expected {}", *f.gold) : ""));
  pugi::xml_node pair = add(details, "div", {{"class", "pair"}});
  add_answer(pair, "reference", row.comparison.reference, f, f.reference, f.text.reference,
             f.text.reference_cut);
  add_answer(pair, "candidate", row.comparison.candidate, f, f.candidate, f.text.candidate,
             f.text.candidate_cut);
}

std::string tie_summary(const std::vector<Flip>& flips) {
  const auto count = [&](NearTie t) { return std::ranges::count(flips, t, &Flip::near_tie); };
  return fmt::format("A near-tie: {}; not one: {}; not known: {}.", count(NearTie::kYes),
                     count(NearTie::kNo), count(NearTie::kUnknown));
}

}  // namespace

void add_flips_section(pugi::xml_node page, const AssayReport& report) {
  if (report.comparisons.empty()) return;
  pugi::xml_node section = add_section(
      page, "flips", "Items that flipped",
      fmt::format("Right in one cell and wrong in the other. Grey: what both wrote; marked: where "
                  "they part. A near-tie is a margin below {:g} between the two largest logits at "
                  "that token, as a harmless change of rounding can turn; tokens count from 0.",
                  kNearTie));
  for (const ComparisonRow& row : report.comparisons) {
    add(section, "h3", {}, row.comparison.candidate);
    add(section, "p", {{"class", "small"}},
        fmt::format("{} lost, {} gained. {}", row.comparison.lost, row.comparison.gained,
                    row.flips.empty() ? "" : tie_summary(row.flips)));
    for (std::size_t i = 0; i < std::min(row.flips.size(), kFlipsShown); ++i) {
      add_flip(section, row, row.flips[i], i < kOpen);
    }
    if (row.flips.size() > kFlipsShown) {
      add(section, "p", {},
          fmt::format("{} more in the JSON report and in the records.",
                      counted(row.flips.size() - kFlipsShown, "flipped item")));
    }
  }
}

}  // namespace cupel
