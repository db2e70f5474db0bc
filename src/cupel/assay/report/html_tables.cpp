#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/assay/report/chart.h"
#include "cupel/assay/report/format.h"
#include "cupel/assay/report/html_parts.h"
#include "cupel/assay/report/xml_text.h"

namespace cupel {
namespace {

void add_share(pugi::xml_node row, const std::optional<Agreement>& a, const char* style,
               const std::string& what) {
  if (!a) {
    add(row, "td", {{"class", "none"}}, "–");
    return;
  }
  // Tinted by how much differs.
  const double tint = std::min(1.0, 3 * a->rate);
  add(row, "td",
      {{"class", style},
       {"style", fmt::format("--tint:{:.0f}%", 60 * tint)},
       {"title", fmt::format("{}: {} of {} pairs differ; same {} %, 95 % {}", what, a->differing,
                             a->pairs, percent(a->total_agreement()),
                             range({1 - a->rate95.high, 1 - a->rate95.low}, 100))}},
      percent(a->total_agreement()));
}

std::string noise_numbers(const RunNoise& n) {
  return fmt::format("u = {:.0f} ({:.0f} to {:.0f})", n.unstable, n.unstable95.low,
                     n.unstable95.high);
}

void add_noise_cell(pugi::xml_node list, const CellRow& c, const RunNoise& n, const Scale& scale) {
  pugi::xml_node item = add(list, "li");
  add_interval_chart(add_chart_row(item, c.name, noise_numbers(n)), scale,
                     {n.unstable, n.unstable95, {}, {}}, {}, c.name,
                     fmt::format("Unstable items: {}", noise_numbers(n)));
  std::string text = fmt::format(
      "One run's score varies by {} points (sd) as its items imply, {} as {} whole runs show (95 % "
      "{}).",
      points(n.deviation_by_items), points(n.deviation_by_runs), n.repeats,
      range(n.deviation_by_runs95, 1));
  if (c.same_text) {
    text +=
        fmt::format(" Two runs give the same text in {} % of cases (95 %: at least {}",
                    percent(c.same_text->total_agreement()), percent(1 - c.same_text->rate95.high));
    text += c.same_answer ? fmt::format("), the same answer in {} %.",
                                        percent(c.same_answer->total_agreement()))
                          : ").";
  }
  add(item, "p", {{"class", "facts"}}, text);
  const std::vector<std::string> sentences = notes(n);
  if (sentences.empty()) return;
  pugi::xml_node more = add(item, "ul", {{"class", "notes"}});
  for (const std::string& note : sentences) add(more, "li", {}, note);
}

const ComparisonRow* comparison_of(const AssayReport& report, const std::string& cell) {
  const auto at = std::ranges::find_if(
      report.comparisons, [&](const ComparisonRow& r) { return r.comparison.candidate == cell; });
  return at == report.comparisons.end() ? nullptr : &*at;
}

// The past and, last, this report.
std::vector<PastCell> with_present(const AssayReport& report, const CellHistory& history) {
  std::vector<PastCell> all = history.past;
  for (const CellRow& c : report.cells) {
    if (c.name != history.cell) continue;
    PastCell now{report.created_at, "this report",    c.repeats,     c.accuracy,
                 c.accuracy95,      report.reference, report.margin, {}};
    if (const ComparisonRow* row = comparison_of(report, c.name)) {
      now.verdict = verdict_name(row->decision.verdict);
    }
    all.push_back(std::move(now));
  }
  return all;
}

std::string style_of(const std::optional<std::string>& verdict) {
  for (const Verdict v : {Verdict::kPass, Verdict::kRegression, Verdict::kInconclusive}) {
    if (verdict == verdict_name(v)) return verdict_class(v);
  }
  return {};
}

void add_cell_history(pugi::xml_node section, const std::vector<PastCell>& all,
                      const std::string& cell) {
  double low = 1;
  double high = 0;
  std::vector<TimePoint> marks;
  for (const PastCell& p : all) {
    low = std::min(low, p.accuracy95.low);
    high = std::max(high, p.accuracy95.high);
    TimePoint& point = marks.emplace_back();
    point.mark.value = 100 * p.accuracy;
    point.mark.interval = {100 * p.accuracy95.low, 100 * p.accuracy95.high};
    point.mark.style = style_of(p.verdict);
    point.when = p.created_at.substr(0, p.created_at.find('T'));
    point.label = fmt::format("{}: {} %, 95 % {}{}", p.created_at, percent(p.accuracy),
                              range(p.accuracy95, 100), p.verdict ? ", " + *p.verdict : "");
  }
  add(section, "h3", {}, cell);
  add_time_chart(section, Scale(100 * low, 100 * high, {0, 100}), marks, cell,
                 fmt::format("Accuracy in per cent over {} reports, {} to {}", all.size(),
                             all.front().created_at, all.back().created_at));
  pugi::xml_node details = add(section, "details");
  add(details, "summary", {}, counted(all.size(), "report"));
  pugi::xml_node body =
      add_table(details, "Reports of " + cell + ", accuracy in per cent",
                {"time", "accuracy", "95 %", "repeats", "verdict", "reference", "margin", "file"});
  for (const PastCell& p : all) {
    pugi::xml_node row = add(body, "tr");
    add(row, "th", {{"scope", "row"}}, p.created_at);
    add(row, "td", {}, percent(p.accuracy));
    add(row, "td", {}, range(p.accuracy95, 100));
    add(row, "td", {}, std::to_string(p.repeats));
    add_badge(add(row, "td"), p.verdict.value_or("reference"));
    add(row, "td", {}, p.reference);
    add(row, "td", {}, fmt::format("{:g}", p.margin));
    add(row, "td", {}, p.source);
  }
}

}  // namespace

void add_noise_section(pugi::xml_node page, const AssayReport& report) {
  pugi::xml_node section = add_section(
      page, "noise", "Noise floor",
      "u: items that change between right and wrong from run to run, counted as coins, with a 95 % "
      "interval. One run's score varies by 100·√(u/4)/items points.");
  double high = 0;
  std::vector<std::string> single;
  for (const CellRow& c : report.cells) {
    if (c.noise) {
      high = std::max(high, c.noise->unstable95.high);
    } else {
      single.push_back(c.name);
    }
  }
  if (high > 0) {
    const Scale scale(0, high, {0, HUGE_VAL});
    pugi::xml_node list = add(section, "ol", {{"class", "rows"}});
    for (const CellRow& c : report.cells) {
      if (c.noise) add_noise_cell(list, c, *c.noise, scale);
    }
    add_axis(add_chart_row(section, "", ""), scale, {});
  }
  if (single.empty()) return;
  std::string names;
  for (const std::string& name : single) names += (names.empty() ? "" : ", ") + name;
  add(section, "p", {}, fmt::format("One repeat, so no noise to be seen: {}.", names));
}

void add_probe_section(pugi::xml_node page, const AssayReport& report) {
  if (report.probes.empty()) return;
  pugi::xml_node section = add_section(
      page, "probes", "Probes",
      "Faults that a score does not show, prompt by prompt, the cell less the reference: points, "
      "nll in nats a token; positive is worse. A probe gates only where a margin was declared.");
  pugi::xml_node body =
      add_table(section, "Probes against the reference",
                {"cell", "probe", "verdict", "loss", "bounds", "margin", "prompts", "p"});
  for (const ProbeComparison& p : report.probes) {
    const int digits = probe_digits(p.kind);
    pugi::xml_node row = add(body, "tr");
    add(row, "th", {{"scope", "row"}}, p.candidate);
    add(row, "td", {}, probe_name(p.kind));
    add_badge(add(row, "td"), p.verdict ? verdict_name(*p.verdict) : "not judged");
    add(row, "td", {}, fmt::format("{:.{}f}", p.loss, digits));
    add(row, "td", {},
        fmt::format("{:.{}f}..{:.{}f}", p.bounds.low, digits, p.bounds.high, digits));
    add(row, "td", {}, p.margin ? fmt::format("{:g}", *p.margin) : "–");
    add(row, "td", {}, std::to_string(p.items));
    add(row, "td", {}, p_value(p.p));
  }
}

void add_agreement_section(pugi::xml_node page, const AssayReport& report) {
  if (report.agreement.empty()) return;
  pugi::xml_node section = add_section(
      page, "agreement", "Agreement between cells",
      "Share of pairs of runs in per cent. Above the diagonal: the same text; below: the same "
      "answer; on it: the same text in two runs of one cell.");
  std::map<std::pair<std::size_t, std::size_t>, const CellAgreement*> pairs;
  for (const CellAgreement& a : report.agreement) pairs[{a.a, a.b}] = &a;
  pugi::xml_node body = add_table(section, "Agreement in per cent", {"cell"});
  pugi::xml_node head = body.previous_sibling("thead").first_child();
  for (std::size_t i = 0; i < report.cells.size(); ++i) {
    add(head, "th", {{"scope", "col"}, {"title", report.cells[i].name}}, std::to_string(i + 1));
  }
  body.parent().append_attribute("class").set_value("matrix");
  for (std::size_t i = 0; i < report.cells.size(); ++i) {
    pugi::xml_node row = add(body, "tr");
    add(row, "th", {{"scope", "row"}}, fmt::format("{} {}", i + 1, report.cells[i].name));
    for (std::size_t j = 0; j < report.cells.size(); ++j) {
      const std::string both = report.cells[i].name + " and " + report.cells[j].name;
      if (i == j) {
        add_share(row, report.cells[i].same_text, "self", "text, " + report.cells[i].name);
        continue;
      }
      const auto at = pairs.find(std::minmax(i, j));
      if (at == pairs.end()) {
        add_share(row, std::nullopt, "", "");
      } else if (i < j) {
        add_share(row, at->second->text, "text", "text, " + both);
      } else {
        add_share(row, at->second->answer, "answer", "answer, " + both);
      }
    }
  }
}

void add_history_section(pugi::xml_node page, const AssayReport& report) {
  const History& history = report.history;
  if (history.cells.empty() && history.other_items == 0) return;
  pugi::xml_node section =
      add_section(page, "history", "History",
                  "Earlier reports of the same cells on the same items, oldest first, this one "
                  "last: accuracy in per cent with its 95 % interval, coloured by verdict.");
  for (const CellHistory& cell : history.cells) {
    add_cell_history(section, with_present(report, cell), cell.cell);
  }
  if (history.other_items > 0) {
    add(section, "p", {{"class", "small"}},
        fmt::format("{} of another task or other items left out.",
                    counted(static_cast<std::size_t>(history.other_items), "report")));
  }
}

void add_origin_section(pugi::xml_node page, const AssayReport& report) {
  pugi::xml_node section =
      add_section(page, "origin", "Where it comes from",
                  "The records hold every answer in full: one JSON line for each item and repeat.");
  for (const CellRow& c : report.cells) {
    add(section, "h3", {}, c.name);
    pugi::xml_node list = add(section, "dl");
    const auto entry = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      add(list, "dt", {}, name);
      add(list, "dd", {}, value);
    };
    for (const auto& [cell, path] : report.records) {
      if (cell == c.name) entry("records", path);
    }
    entry("model", c.identity.model);
    entry("build", c.identity.build);
    entry("settings", c.identity.settings);
    std::string launches;
    for (const std::string& l : c.launches) launches += (launches.empty() ? "" : ", ") + l;
    entry(c.launches.size() == 1 ? "launch" : "launches", launches);
    if (!list.first_child()) section.remove_child(list);
  }
}

}  // namespace cupel
