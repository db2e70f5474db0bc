#include "cupel/assay/report/html.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/chart.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/report/html_parts.h"
#include "cupel/assay/report/xml_text.h"

namespace cupel {
namespace {

void add_head(pugi::xml_node html, const AssayReport& report) {
  pugi::xml_node head = add(html, "head");
  add(head, "meta", {{"charset", "utf-8"}});
  add(head, "meta",
      {{"http-equiv", "Content-Security-Policy"},
       {"content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:"}});
  add(head, "meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  add(head, "meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  // Browsers ask for an icon of their own accord otherwise.
  add(head, "link", {{"rel", "icon"}, {"href", "data:,"}});
  add(head, "title", {},
      fmt::format("{}: {}", verdict_name(overall_verdict(report)), report.title));
  head.append_child("style").append_child(pugi::node_pcdata).set_value(page_style());
}

void add_header(pugi::xml_node body, const AssayReport& report) {
  pugi::xml_node header = add(body, "header");
  add(header, "p", {{"class", "kicker"}}, "Cupel assay");
  pugi::xml_node title = add(header, "h1");
  add(title, "span", {}, report.task.empty() ? "Assay" : report.task);
  add_badge(title, verdict_name(overall_verdict(report)));
  add(header, "p", {{"class", "lead"}}, report.title);
  std::array<int, 3> counts{};
  for (const Verdict verdict : verdicts(report)) ++counts.at(static_cast<std::size_t>(verdict));
  std::string text = fmt::format("{} pass, {} regressed, {} inconclusive against ", counts[0],
                                 counts[1], counts[2]);
  pugi::xml_node line = add(header, "p", {{"class", "meta"}}, text);
  add(line, "strong", {}, report.reference);
  add_text(line, fmt::format(" at a margin of {:g} {}.", report.margin, point_word(report.margin)));
  if (!report.created_at.empty()) {
    add_text(line, " ");
    add(line, "time", {{"datetime", report.created_at}}, report.created_at);
  }
}

Scale loss_scale(const AssayReport& report) {
  double low = 0;
  double high = report.margin;
  for (const ComparisonRow& row : report.comparisons) {
    const Decision& d = row.decision;
    low = std::min({low, d.interval90.low, d.interval95_new.low});
    high = std::max({high, d.interval90.high, d.interval95_new.high});
  }
  return {low, high};
}

void add_comparison(pugi::xml_node list, const AssayReport& report, const ComparisonRow& row,
                    const Scale& scale, std::span<const GuideLine> guides) {
  const Comparison& c = row.comparison;
  const Decision& d = row.decision;
  const std::string description = fmt::format(
      "Loss {} points, bounds {}, 95 % interval {}, margin {:g}: {}", points(c.loss),
      range(d.interval90, 1), range(d.interval95_new, 1), report.margin, verdict_name(d.verdict));
  pugi::xml_node item = add(list, "li", {{"class", "comparison"}});
  pugi::xml_node plot =
      add_chart_row(item, c.candidate,
                    fmt::format("{} ({} to {})", points(c.loss), points(d.interval90.low),
                                points(d.interval90.high)));
  add_interval_chart(plot, scale,
                     {c.loss, d.interval90, d.interval95_new, verdict_class(d.verdict)}, guides,
                     c.candidate, description);
  pugi::xml_node facts = add(item, "p", {{"class", "facts"}});
  add_badge(facts, verdict_name(d.verdict));
  add_text(facts,
           fmt::format(" {} lost, {} gained of {} items; bounds at {:.3g} % each side; 95 % {}; "
                       "{} against no loss",
                       c.lost, c.gained, c.items, 100 * row.level, range(d.interval95_new, 1),
                       p_is(d.p_regression)));
  if (report.comparisons.size() > 1) {
    add_text(facts, fmt::format(", {} over the family", p_value(d.p_holm)));
  }
  add_text(facts, ".");
  pugi::xml_node sentences = add(item, "ul", {{"class", "notes"}});
  for (const std::string& note : row.notes) add(sentences, "li", {}, note);
  for (const std::string& note : notes(c, d)) add(sentences, "li", {}, note);
}

void add_verdict_section(pugi::xml_node page, const AssayReport& report) {
  if (report.comparisons.empty()) return;
  pugi::xml_node section = add_section(
      page, "verdicts", "Verdicts",
      fmt::format("Loss against {} in points, item by item; to the right is worse. PASS: the upper "
                  "bound lies below the margin. REGRESSION: the lower bound lies above 0. Thick: "
                  "the bounds that decide; thin: 95 %.",
                  report.reference));
  const Scale scale = loss_scale(report);
  const std::vector<GuideLine> guides = {{0, "zero"}, {report.margin, "margin"}};
  pugi::xml_node list = add(section, "ol", {{"class", "rows"}});
  for (const ComparisonRow& row : report.comparisons) {
    add_comparison(list, report, row, scale, guides);
  }
  pugi::xml_node axis = add_chart_row(section, "", "");
  add_axis(axis, scale, guides);
  const std::size_t family = verdicts(report).size();
  if (family > 1) {
    add(section, "p", {{"class", "small"}},
        fmt::format("REGRESSION is held to 5 % over the {} comparisons{} together (Holm).", family,
                    family > report.comparisons.size() ? ", gating probes included," : ""));
  }
  if (report.interactions.empty()) return;
  add(section, "h3", {}, "Interaction");
  pugi::xml_node body =
      add_table(section, "The loss under one backend less the loss under the other, in points",
                {"pair", "estimate", "95 %", "one-sided p"});
  for (const Interaction& i : report.interactions) {
    pugi::xml_node row = add(body, "tr");
    add(row, "th", {{"scope", "row"}}, i.name);
    add(row, "td", {}, fmt::format("{} ± {:.2f}", points(i.estimate), i.standard_error));
    add(row, "td", {}, range(i.interval95, 1));
    add(row, "td", {}, p_value(i.p_one_sided));
  }
}

void add_accuracy_section(pugi::xml_node page, const AssayReport& report) {
  pugi::xml_node section =
      add_section(page, "accuracy", "Accuracy",
                  "Share of right answers in per cent, with its 95 % interval for new items of the "
                  "same kind. Cells share their items: the intervals overlap more than the "
                  "comparisons above do.");
  double low = 1;
  double high = 0;
  for (const CellRow& c : report.cells) {
    low = std::min(low, c.accuracy95.low);
    high = std::max(high, c.accuracy95.high);
  }
  const Scale scale(100 * low, 100 * high, {0, 100});
  pugi::xml_node list = add(section, "ol", {{"class", "rows"}});
  for (const CellRow& c : report.cells) {
    pugi::xml_node item = add(list, "li");
    pugi::xml_node plot =
        add_chart_row(item, c.name + (c.name == report.reference ? " (reference)" : ""),
                      fmt::format("{} ({} to {})", percent(c.accuracy), percent(c.accuracy95.low),
                                  percent(c.accuracy95.high)));
    add_interval_chart(
        plot, scale, {100 * c.accuracy, {100 * c.accuracy95.low, 100 * c.accuracy95.high}, {}, {}},
        {}, c.name,
        fmt::format("Accuracy {} %, 95 % interval {}, {}", percent(c.accuracy),
                    range(c.accuracy95, 100),
                    counted(static_cast<std::size_t>(c.repeats), "repeat")));
  }
  add_axis(add_chart_row(section, "", ""), scale, {});
  pugi::xml_node body = add_table(
      section, "Answers of each cell, in per cent",
      {"cell", "repeats", "strict", "no number", "truncated", "prompt tok/s", "output tok/s"});
  const auto share = [](const std::optional<double>& s) { return s ? percent(*s) : "–"; };
  const auto rate = [](double r) { return r > 0 ? fmt::format("{:.0f}", r) : "–"; };
  for (const CellRow& c : report.cells) {
    pugi::xml_node row = add(body, "tr");
    add(row, "th", {{"scope", "row"}}, c.name);
    add(row, "td", {}, std::to_string(c.repeats));
    for (const auto& s : {c.strict_accuracy, c.invalid_share, c.truncated_share}) {
      add(row, "td", {}, share(s));
    }
    add(row, "td", {}, rate(c.prompt_tokens_per_second));
    add(row, "td", {}, rate(c.output_tokens_per_second));
  }
}

}  // namespace

std::string verdict_class(Verdict verdict) {
  std::string name(verdict_name(verdict));
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  return name;
}

void add_badge(pugi::xml_node parent, std::string_view verdict) {
  std::string style = "badge";
  for (const Verdict v : {Verdict::kPass, Verdict::kRegression, Verdict::kInconclusive}) {
    if (verdict == verdict_name(v)) style += ' ' + verdict_class(v);
  }
  add(parent, "span", {{"class", style}}, verdict);
}

pugi::xml_node add_section(pugi::xml_node parent, const std::string& id, const std::string& title,
                           const std::string& text) {
  pugi::xml_node section = add(parent, "section", {{"aria-labelledby", id}});
  add(section, "h2", {{"id", id}}, title);
  if (!text.empty()) add(section, "p", {{"class", "explain"}}, text);
  return section;
}

pugi::xml_node add_chart_row(pugi::xml_node parent, const std::string& name,
                             const std::string& numbers) {
  pugi::xml_node row = add(parent, "div", {{"class", name.empty() ? "row axis-row" : "row"}});
  add(row, "span", {{"class", "name"}}, name);
  pugi::xml_node plot = add(row, "div", {{"class", "plot"}});
  add(row, "span", {{"class", "numbers"}}, numbers);
  return plot;
}

pugi::xml_node add_table(pugi::xml_node parent, const std::string& caption,
                         std::initializer_list<const char*> headings) {
  // Reachable by keyboard, since it may have to be scrolled.
  pugi::xml_node box =
      add(parent, "div",
          {{"class", "scroll"}, {"role", "region"}, {"aria-label", caption}, {"tabindex", "0"}});
  pugi::xml_node table = add(box, "table");
  add(table, "caption", {}, caption);
  pugi::xml_node row = add(add(table, "thead"), "tr");
  for (const char* heading : headings) add(row, "th", {{"scope", "col"}}, heading);
  return add(table, "tbody");
}

std::string render_html(const AssayReport& report) {
  pugi::xml_document document;
  pugi::xml_node html = add(document, "html", {{"lang", "en"}});
  add_head(html, report);
  pugi::xml_node body = add(html, "body");
  add_header(body, report);
  pugi::xml_node page = add(body, "main");
  add_verdict_section(page, report);
  add_probe_section(page, report);
  add_accuracy_section(page, report);
  add_noise_section(page, report);
  add_agreement_section(page, report);
  add_history_section(page, report);
  add_flips_section(page, report);
  add_origin_section(page, report);
  return "<!DOCTYPE html>\n" + serialise(document) + '\n';
}

}  // namespace cupel
