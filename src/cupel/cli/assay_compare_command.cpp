#include <algorithm>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/import.h"
#include "cupel/assay/looks_ledger.h"
#include "cupel/assay/noise.h"
#include "cupel/assay/sequential.h"
#include "cupel/cli/assay_commands.h"

namespace cupel {
namespace {

struct Flags {
  std::vector<std::string> results;
  double margin = 0;
  std::string looks;
  std::string bound = "group";
  bool deterministic = false;
  ImportOptions import;
  bool no_ledger = false;
};

struct Cell {
  std::string path;  // the first file: the ledger lies beside it
  std::vector<Record> records;
  ArmAtLook arm;
};

// "A.jsonl,B.jsonl": files of one cell, whose passes follow each other.
std::vector<std::filesystem::path> split(const std::string& text) {
  std::vector<std::filesystem::path> paths;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) paths.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (paths.empty()) throw InputError("results", "a file", "\"" + text + "\"");
  return paths;
}

std::vector<Cell> load(const Flags& flags) {
  std::vector<Cell> cells;
  std::set<std::string> names;
  for (const std::string& text : flags.results) {
    const auto paths = split(text);
    Cell cell;
    cell.path = paths.front().string();
    cell.records = import_results(paths, paths.front().stem().string(), flags.import);
    cell.arm.outcomes = outcomes_from_records(cell.records, text);
    cell.arm.identical_passes = identical_passes(cell.records);
    names.insert(cell.arm.outcomes.name);
    cells.push_back(std::move(cell));
  }
  if (names.size() < cells.size()) {
    for (Cell& cell : cells) cell.arm.outcomes.name = cell.path;
  }
  return cells;
}

void print_cells(const std::vector<Cell>& cells) {
  fmt::print("{:>8}  {:>9}  {:>14}  {:>15}  {:>19}  {:>13}  {}\n", "repeats", "accuracy",
             "95 % interval", "same text, 95 %", "unstable u, 95 %", "run sd, seen", "cell");
  for (const Cell& cell : cells) {
    const CellOutcomes& o = cell.arm.outcomes;
    const Interval i = accuracy_interval(o, 0.95);
    std::string same = "-";
    std::string unstable = "-";
    std::string deviation = "-";
    std::vector<std::string> lines;
    if (o.repeats() >= 2) {
      const RunNoise noise = run_noise(o);
      const Agreement text = text_agreement(cell.records, o.name);
      same = fmt::format("{:.2f}, >={:.2f}", 100 * text.total_agreement(),
                         100 * (1 - text.rate95.high));
      unstable = fmt::format("{:.0f}, {:.0f}..{:.0f}", noise.unstable, noise.unstable95.low,
                             noise.unstable95.high);
      deviation = fmt::format("{:.2f}, {:.2f}", noise.deviation_by_items, noise.deviation_by_runs);
      lines = notes(noise);
      if (text.differing == 0) {
        lines.push_back(
            fmt::format("No text differed in {} independent pairs: at most {:.3g} % of "
                        "pairs differ (95 %).",
                        text.independent_pairs, 100 * text.rate95.high));
      }
      const bool answers = std::any_of(cell.records.begin(), cell.records.end(),
                                       [](const Record& r) { return r.extracted.has_value(); });
      if (answers) {
        const Agreement answer = answer_agreement(cell.records, o.name);
        lines.push_back(fmt::format("The same answer in {:.2f} % of pairs of repeats.",
                                    100 * answer.total_agreement()));
      }
    }
    fmt::print("{:>8}  {:>9.2f}  {:>14}  {:>15}  {:>19}  {:>13}  {}\n", o.repeats(),
               100 * o.accuracy(), fmt::format("{:.2f}..{:.2f}", 100 * i.low, 100 * i.high), same,
               unstable, deviation, o.name);
    for (const std::string& line : lines) fmt::print("          {}\n", line);
  }
}

void print_decision(const LookDecision& l, bool anytime) {
  const Comparison& c = l.comparison;
  const Decision& d = l.decision;
  fmt::print(
      "{}\n  {:<13} loss {:.2f}, {} lost, {} gained; bounds at {:.2f} % each side: {:.2f} to "
      "{:.2f}; 95 % {:.2f} to {:.2f}; p = {}\n",
      c.candidate, verdict_name(d.verdict), c.loss, c.lost, c.gained, 100 * l.look.alpha,
      d.interval90.low, d.interval90.high, d.interval95_new.low, d.interval95_new.high,
      format_p(d.p_regression));
  if (anytime && l.evidence) {
    fmt::print(
        "    Evidence after {} passes: {:.3g} against no loss, {:.3g} against a loss of the "
        "margin (20 decides). For this item set alone.\n",
        l.evidence->passes, l.evidence->against_no_loss, l.evidence->against_margin);
  }
  fmt::print("    {}\n", l.reason);
  for (const std::string& note : notes(c, d)) fmt::print("    {}\n", note);
}

LookPlan plan_of(const Flags& flags, const Cell& reference, const std::vector<Cell>& cells) {
  LookPlan plan;
  if (!flags.looks.empty()) {
    plan.repeats = parse_numbers(flags.looks, "--looks", 1);
    return plan;
  }
  // One look, now.
  int now = reference.arm.outcomes.repeats();
  for (const Cell& cell : cells) now = std::min(now, cell.arm.outcomes.repeats());
  plan.repeats = {now};
  return plan;
}

ExitCode run_compare(const Flags& flags) {
  if (!(flags.margin > 0 && flags.margin <= 100)) {
    throw InputError("--margin", "points above 0 and at most 100", fmt::format("{}", flags.margin));
  }
  const bool anytime = parse_bound(flags.bound) == SequentialBound::kAnytime;
  if (flags.results.size() < 2) {
    throw InputError("results", "a reference and at least one candidate",
                     fmt::format("{}", flags.results.size()));
  }
  const std::vector<Cell> cells = load(flags);
  const Cell& reference = cells.front();
  LookRule rule{.margin = flags.margin,
                .plan = plan_of(flags, reference, cells),
                .bound = parse_bound(flags.bound),
                .deterministic = flags.deterministic};

  // The family is judged by one plan; each candidate has its own looks behind it.
  std::vector<ArmAtLook> arms;
  std::vector<std::vector<TakenLook>> taken;
  std::vector<StudyLooks> studies;
  const auto ledger_path = [](const Cell& cell) {
    return std::filesystem::path(cell.path + ".looks.json");
  };
  const bool ledger = !flags.no_ledger && !anytime;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    arms.push_back(cells[i].arm);
    taken.emplace_back();
    if (!ledger) continue;
    studies.push_back(LooksLedger(ledger_path(cells[i]))
                          .find(reference.arm.outcomes.name, cells[i].arm.outcomes.name,
                                study_hash(reference.records, cells[i].records), flags.margin,
                                rule.plan));
    taken.back() = studies.back().taken;
    // What was fixed at the first look holds.
    if (!studies.back().taken.empty()) rule.plan = studies.back().plan;
  }
  const std::vector<LookDecision> looks = decide_at_look(reference.arm, arms, rule, taken);

  fmt::print("Compared item by item with {} at a margin of {:g}; looks {}.\n\n",
             reference.arm.outcomes.name, flags.margin, list_items(rule.plan.repeats));
  print_cells(cells);
  fmt::print("\n");
  std::vector<Decision> decisions;
  for (const LookDecision& l : looks) {
    print_decision(l, anytime);
    decisions.push_back(l.decision);
  }
  if (looks.size() > 1) {
    fmt::print("REGRESSION is held to 5 % over the {} comparisons together (Holm).\n",
               looks.size());
  }
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const TakenLook& look = looks[i].look;
    if (std::find(studies[i].taken.begin(), studies[i].taken.end(), look) ==
        studies[i].taken.end()) {
      studies[i].taken.push_back(look);
    }
    studies[i].plan = rule.plan;
    LooksLedger(ledger_path(cells[i + 1])).keep(studies[i]);
  }
  return exit_code(decisions);
}

}  // namespace

void add_assay_compare_command(CLI::App& assay, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = add_statistics_command(
      assay, "compare",
      "Compares per-sample results that are there: ours, lm-eval's, sgl-eval's, "
      "SGLang's raw results");
  command
      ->add_option("results", flags->results,
                   "JSON lines: the reference, then the candidates. Several files of one cell, "
                   "one after the other, as A,B")
      ->required();
  command
      ->add_option("--margin", flags->margin,
                   "Largest loss that may pass, in points; declared before the first look")
      ->required();
  command->add_option("--looks", flags->looks,
                      "Repeats at each look that will be taken, as 1,2,4,8; fixed at the first "
                      "(default: one look, now)");
  command
      ->add_option(
          "--bound", flags->bound,
          "group (group-sequential: the looks share the 5 %), or anytime (any number of looks, "
          "for this item set alone)")
      ->capture_default_str();
  command->add_flag("--deterministic", flags->deterministic,
                    "A repeat would give the same answers (default: not so)");
  command->add_option("--filter", flags->import.filter,
                      "Which filter of lm-eval's samples (default: the only one)");
  command->add_option("--metric", flags->import.metric,
                      "Which score of lm-eval's samples (default: exact_match, else acc)");
  command->add_flag("--no-ledger", flags->no_ledger,
                    "Do not keep this look in CANDIDATE.looks.json (default: keep it, so that "
                    "extended records are charged)");
  command->callback([=, &run] { run = [=] { return run_compare(*flags); }; });
}

}  // namespace cupel
