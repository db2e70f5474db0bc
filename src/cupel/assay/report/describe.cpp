#include <algorithm>

#include <fmt/format.h>

#include "cupel/assay/report.h"
#include "cupel/base/error.h"
#include "cupel/base/hash.h"
#include "cupel/eval/score.h"

namespace cupel {
namespace {

using CellRecords = std::span<const Record>;

CellRow plain_row(const CellOutcomes& outcomes) {
  CellRow row;
  row.name = outcomes.name;
  row.repeats = outcomes.repeats();
  row.accuracy = outcomes.accuracy();
  row.accuracy95 = accuracy_interval(outcomes, 0.95);
  return row;
}

void add_shares(CellRow& row, const Score& score) {
  row.strict_accuracy = score.strict_accuracy;
  row.invalid_share = score.invalid_share;
  row.truncated_share = score.truncated_share;
}

void describe_cell(CellRow& row, CellRecords records) {
  const CellOutcomes outcomes = outcomes_from_records(records, row.name);
  row.items = static_cast<int>(outcomes.items.size());
  row.identity = records.front().identity;
  for (const Record& r : records) {
    if (!r.launch.empty() && std::ranges::find(row.launches, r.launch) == row.launches.end()) {
      row.launches.push_back(r.launch);
    }
  }
  if (outcomes.repeats() < 2) return;
  row.noise = run_noise(outcomes);
  row.same_text = text_agreement(records, row.name);
  if (has_answers(records)) row.same_answer = answer_agreement(records, row.name);
}

// Two runs over the same questions have the same; the order of records makes no difference.
std::string item_set_of(const CellOutcomes& outcomes) {
  Hasher hasher;
  for (const ItemOutcomes& item : outcomes.items) {
    hasher.add(fmt::format("{} {}\n", item.item, item.prompt_hash));
  }
  return hasher.hex();
}

CellAgreement agreement_between(std::size_t a, std::size_t b, CellRecords in_a, CellRecords in_b,
                                const std::string& where) {
  CellAgreement pair{a, b, text_agreement_between(in_a, in_b, where), {}};
  if (has_answers(in_a) && has_answers(in_b)) {
    pair.answer = answer_agreement_between(in_a, in_b, where);
  }
  return pair;
}

}  // namespace

CellRow cell_row(const CellOutcomes& outcomes, const RunResult& result) {
  CellRow row = plain_row(outcomes);
  add_shares(row, result.score);
  row.prompt_tokens_per_second = result.prompt_tokens_per_second;
  row.output_tokens_per_second = result.output_tokens_per_second;
  row.seconds = result.wall_seconds;
  return row;
}

CellRow cell_row(const CellOutcomes& outcomes, std::span<const Record> records) {
  CellRow row = plain_row(outcomes);
  if (!records.empty() && !records.front().identity.build.empty()) add_shares(row, score(records));
  return row;
}

void describe_records(AssayReport& report, std::span<const CellRecords> records) {
  if (records.size() != report.cells.size() || records.empty()) {
    throw InputError("report", fmt::format("the records of {} cells", report.cells.size()),
                     std::to_string(records.size()));
  }
  for (std::size_t i = 0; i < records.size(); ++i) describe_cell(report.cells[i], records[i]);
  report.task = records.front().front().task;
  report.item_set = item_set_of(outcomes_from_records(records.front(), report.cells[0].name));
  const auto index_of = [&](const std::string& name) {
    const auto at = std::ranges::find(report.cells, name, &CellRow::name);
    if (at == report.cells.end()) throw InputError("report", "a cell named " + name, "none");
    return static_cast<std::size_t>(at - report.cells.begin());
  };
  for (ComparisonRow& row : report.comparisons) {
    row.flips = find_flips(records[index_of(row.comparison.reference)],
                           records[index_of(row.comparison.candidate)]);
  }
  report.agreement.clear();
  for (std::size_t a = 0; a < records.size(); ++a) {
    for (std::size_t b = a + 1; b < records.size(); ++b) {
      report.agreement.push_back(agreement_between(
          a, b, records[a], records[b], report.cells[a].name + " and " + report.cells[b].name));
    }
  }
}

std::vector<Verdict> verdicts(const AssayReport& report) {
  std::vector<Verdict> all;
  all.reserve(report.comparisons.size() + report.probes.size());
  for (const ComparisonRow& row : report.comparisons) all.push_back(row.decision.verdict);
  for (const ProbeComparison& probe : report.probes) {
    if (probe.verdict) all.push_back(*probe.verdict);
  }
  return all;
}

Verdict overall_verdict(const AssayReport& report) {
  const std::vector<Verdict> all = verdicts(report);
  std::vector<Decision> decisions(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) decisions[i].verdict = all[i];
  switch (exit_code(decisions)) {
    case ExitCode::kPass:
      return Verdict::kPass;
    case ExitCode::kRegression:
      return Verdict::kRegression;
    default:
      return Verdict::kInconclusive;
  }
}

}  // namespace cupel
