// The report of an assay: what every form of it shows (assay/report/), and the form for a terminal:
// a table of cells, the paired comparisons, where the records are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cupel/assay/noise.h"
#include "cupel/assay/paired.h"
#include "cupel/assay/probe_verdict.h"
#include "cupel/assay/report/agreement.h"
#include "cupel/assay/report/flips.h"
#include "cupel/assay/report/history.h"
#include "cupel/assay/verdict.h"
#include "cupel/eval/runner.h"

namespace cupel {

struct CellRow {
  std::string name;
  int repeats = 1;
  double accuracy = 0;  // shares in [0, 1]
  Interval accuracy95;
  // Absent for results of other tools, which do not tell them.
  std::optional<double> strict_accuracy;
  std::optional<double> invalid_share;
  std::optional<double> truncated_share;
  double prompt_tokens_per_second = 0;  // 0: nothing was asked (all records were there)
  double output_tokens_per_second = 0;
  double seconds = 0;
  // The rest is filled by describe_records().
  int items = 0;
  CellIdentity identity = {};
  std::vector<std::string> launches = {};  // distinct; none where launches make no difference
  // From two repeats on.
  std::optional<RunNoise> noise = {};
  std::optional<Agreement> same_text = {};
  std::optional<Agreement> same_answer = {};  // where answers were extracted
};

CellRow cell_row(const CellOutcomes& outcomes, const RunResult& result);
// Of records that were there: nothing is known of rates and times.
CellRow cell_row(const CellOutcomes& outcomes, std::span<const Record> records);

struct ComparisonRow {
  Comparison comparison;
  Decision decision;
  std::vector<std::string> notes = {};  // one sentence each, before those of the comparison
  // One-sided level of Decision::interval90 and of the verdict; not the plain 5 % where looks share
  // them.
  double level = kAlpha;
  std::vector<Flip> flips = {};  // by describe_records()
};

struct AssayReport {
  std::string title;  // task, items, shots: one line
  std::vector<CellRow> cells;
  std::string reference;  // the cell that the others are compared with
  double margin = 0;      // points
  // Repeats at the looks fixed beforehand; empty for a single one. Then Decision::interval90 is at
  // the level of the look.
  std::vector<int> looks = {};
  // Probes of the other cells compared with the reference; those with a verdict are further members
  // of the Holm family.
  std::vector<ProbeComparison> probes = {};
  std::vector<ComparisonRow> comparisons;
  std::vector<Interaction> interactions;
  std::vector<std::pair<std::string, std::string>> records;  // cell, path
  // The rest is filled by describe_records() and by whoever writes the report.
  std::string task = {};
  std::string item_set = {};    // hash over the items and their prompts: equal for equal questions
  std::string created_at = {};  // UTC, ISO 8601: "2026-09-01T04:00:00Z"
  std::vector<CellAgreement> agreement = {};  // every pair of cells
  History history = {};
};

// Adds what the records show beyond their scores: noise within each cell, agreement between cells,
// and the items that flipped. records[i] are those of report.cells[i]; comparisons refer to cells
// by name. Throws InputError as outcomes_from_records() does.
void describe_records(AssayReport& report, std::span<const std::span<const Record>> records);

// The verdicts of the comparisons, then those of the gating probes.
std::vector<Verdict> verdicts(const AssayReport& report);
// PASS only if every one of them passes; the verdict of exit_code().
Verdict overall_verdict(const AssayReport& report);

// UTF-8 text of lines of at most 110 columns (paths and the names of cells may be longer where they
// stand alone), ending in a newline.
std::string render_report(const AssayReport& report);

}  // namespace cupel
