#include <algorithm>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/import.h"
#include "cupel/assay/looks_ledger.h"
#include "cupel/assay/noise.h"
#include "cupel/assay/report/looks_text.h"
#include "cupel/assay/sequential.h"
#include "cupel/cli/assay_commands.h"
#include "cupel/cli/report_flags.h"

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
  ReportFlags reports;
};

struct Cell {
  std::string path;   // the first file: the ledger lies beside it
  std::string files;  // all, as given
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
    cell.files = text;
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

// The report without what the records show beyond scores.
AssayReport report_of(const Flags& flags, const LookPlan& plan, const std::vector<Cell>& cells,
                      const std::vector<LookDecision>& looks) {
  AssayReport report;
  report.reference = cells.front().arm.outcomes.name;
  report.margin = flags.margin;
  if (!flags.looks.empty()) report.looks = plan.repeats;
  report.title = fmt::format("Compared item by item with {} at a margin of {:g}; looks {}.",
                             report.reference, flags.margin, list_items(plan.repeats));
  for (const Cell& cell : cells) {
    report.cells.push_back(cell_row(cell.arm.outcomes, cell.records));
    report.records.emplace_back(cell.arm.outcomes.name, cell.files);
  }
  for (const LookDecision& l : looks) {
    ComparisonRow row{.comparison = l.comparison, .decision = l.decision};
    row.level = l.look.alpha;
    if (l.evidence) {
      row.notes.push_back(
          fmt::format("Evidence after {} passes: {:.3g} against no loss, {:.3g} against a loss of "
                      "the margin (20 decides). For this item set alone.",
                      l.evidence->passes, l.evidence->against_no_loss, l.evidence->against_margin));
    }
    row.notes.push_back(l.reason);
    report.comparisons.push_back(std::move(row));
  }
  return report;
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
  const ReportFiles report_files(flags.reports);
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

  AssayReport report = report_of(flags, rule.plan, cells, looks);
  std::vector<std::span<const Record>> records;
  records.reserve(cells.size());
  for (const Cell& cell : cells) records.emplace_back(cell.records);
  describe_records(report, records);
  fmt::print("{}", render_looks(report));
  for (std::size_t i = 0; i < studies.size(); ++i) {
    const TakenLook& look = looks[i].look;
    if (std::find(studies[i].taken.begin(), studies[i].taken.end(), look) ==
        studies[i].taken.end()) {
      studies[i].taken.push_back(look);
    }
    studies[i].plan = rule.plan;
    LooksLedger(ledger_path(cells[i + 1])).keep(studies[i]);
  }
  report_files.write(std::move(report));
  std::vector<Decision> decisions;
  decisions.reserve(looks.size());
  for (const LookDecision& l : looks) decisions.push_back(l.decision);
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
  flags->reports.add(*command);
  command->callback([=, &run] { run = [=] { return run_compare(*flags); }; });
}

}  // namespace cupel
