// Earlier JSON reports, as the history of the cells of a new one.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cupel/assay/interval.h"

namespace cupel {

// What history needs of a JSON report.
struct PastReport {
  struct Cell {
    std::string name;
    int repeats = 0;
    double accuracy = 0;  // share
    Interval accuracy95;
    // Against the report's reference; absent for the reference itself.
    std::optional<std::string> verdict;
    std::optional<double> loss;  // points
  };

  std::string source;  // file name, for tables
  std::string created_at;
  std::string task;
  std::string item_set;
  std::string reference;
  double margin = 0;
  std::vector<Cell> cells;
};

// `where` names the file in errors. Throws InputError for anything that is no JSON report of this
// program, or of a later version of its schema.
PastReport parse_past_report(std::string_view json, const std::string& where);

// Files and folders; in a folder every *.json that is a report (others, such as the ledgers of
// looks, are passed over). By ascending time; a report that is there twice counts once. Throws
// InputError for a file that cannot be read or, named itself, is no report.
std::vector<PastReport> load_history(std::span<const std::string> paths);

struct PastCell {
  std::string created_at;
  std::string source;
  int repeats = 0;
  double accuracy = 0;
  Interval accuracy95;
  std::string reference;
  double margin = 0;
  std::optional<std::string> verdict;
};

struct CellHistory {
  std::string cell;
  std::vector<PastCell> past;  // by ascending time
};

struct History {
  std::vector<CellHistory> cells;  // of the cells that have a past
  int other_items = 0;             // reports left out: another task or other items
};

struct AssayReport;

// The past of the report's cells: same name, task and items.
History history_of(const AssayReport& report, std::span<const PastReport> past);

}  // namespace cupel
