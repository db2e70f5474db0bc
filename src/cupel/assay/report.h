// The assay as plain text for a terminal: a table of cells, the paired comparisons, where the
// records are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cupel/assay/paired.h"
#include "cupel/assay/verdict.h"
#include "cupel/eval/runner.h"

namespace cupel {

struct CellRow {
  std::string name;
  int repeats = 1;
  double accuracy = 0;  // shares in [0, 1]
  Interval accuracy95;
  double strict_accuracy = 0;
  double invalid_share = 0;
  double truncated_share = 0;
  double prompt_tokens_per_second = 0;  // 0: nothing was asked (all records were there)
  double output_tokens_per_second = 0;
  double seconds = 0;
};

CellRow cell_row(const CellOutcomes& outcomes, const RunResult& result);

struct ComparisonRow {
  Comparison comparison;
  Decision decision;
  std::vector<std::string> notes = {};  // one sentence each, before those of the comparison
};

struct AssayReport {
  std::string title;  // task, items, shots: one line
  std::vector<CellRow> cells;
  std::string reference;  // the cell that the others are compared with
  double margin = 0;      // points
  // Repeats at the looks fixed beforehand; empty for a single one. Then Decision::interval90 is at
  // the level of the look.
  std::vector<int> looks = {};
  std::size_t gating_probes = 0;  // further members of the Holm family
  std::vector<ComparisonRow> comparisons;
  std::vector<Interaction> interactions;
  std::vector<std::pair<std::string, std::string>> records;  // cell, path
};

// UTF-8 text of lines of at most 110 columns (paths and the names of cells may be longer where they
// stand alone), ending in a newline.
std::string render_report(const AssayReport& report);

}  // namespace cupel
