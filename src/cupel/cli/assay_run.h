// Runs the cells of an assay, each to as many repeats as are wanted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cupel/cli/assay_cells.h"
#include "cupel/eval/runner.h"

namespace cupel {

class CellRunner {
 public:
  CellRunner(const AssayFlags& flags, const Task& task, const std::vector<AssayCell>& cells);
  CellRunner(const CellRunner&) = delete;
  CellRunner& operator=(const CellRunner&) = delete;
  ~CellRunner();

  // The records of a cell with `repeats` repeats, asking what is missing. A later call for more
  // repeats goes on with the same file. Times and rates are of all calls for this cell together.
  // Throws as run_task() does.
  const RunResult& run(std::size_t cell, int repeats);

  // The latest result of run(), which must have been called.
  const RunResult& result(std::size_t cell) const { return results_.at(cell); }

  // What answers for a cell. One engine is held at a time: valid until another cell is asked for.
  Target& target(std::size_t cell);

  // Gives the same answers in every repeat, as Cupel's own engine does unless it samples. Of a
  // server that is not known.
  bool deterministic(std::size_t cell) const;

 private:
  struct Held;

  const AssayFlags& flags_;
  const Task& task_;
  const std::vector<AssayCell>& cells_;
  std::string launch_;
  std::unique_ptr<Held> held_;
  std::vector<RunResult> results_;  // by cell; without records before the first run
};

}  // namespace cupel
