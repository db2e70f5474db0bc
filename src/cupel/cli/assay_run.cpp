#include "cupel/cli/assay_run.h"

#include <fmt/format.h>

#include "cupel/base/fingerprint.h"
#include "cupel/cli/progress.h"
#include "cupel/eval/engine_target.h"

namespace cupel {

struct CellRunner::Held {
  Held(std::size_t of, const EngineOptions& options) : cell(of), engine(options), target(engine) {}

  std::size_t cell;
  Engine engine;
  EngineTarget target;
};

CellRunner::CellRunner(const AssayFlags& flags, const Task& task,
                       const std::vector<AssayCell>& cells)
    : flags_(flags),
      task_(task),
      cells_(cells),
      launch_(flags.server.launch()),
      results_(cells.size()) {}

CellRunner::~CellRunner() = default;

bool CellRunner::deterministic(std::size_t cell) const {
  return task_.temperature == 0 && !cells_.at(cell).is_endpoint();
}

Target& CellRunner::target(std::size_t cell) {
  const AssayCell& c = cells_.at(cell);
  if (c.endpoint) return *c.endpoint;
  if (!held_ || held_->cell != cell) {
    held_.reset();  // the memory of two models may not be there
    held_ = std::make_unique<Held>(cell, flags_.engine.options(c.model, c.kind));
  }
  return held_->target;
}

const RunResult& CellRunner::run(std::size_t cell, int repeats) {
  const AssayCell& c = cells_.at(cell);
  RunResult& last = results_.at(cell);
  const bool begun = !last.records.empty();
  if (begun && last.records.back().repeat + 1 == repeats) return last;
  if (!begun && !flags_.task.resume) {
    // Fresh records are a new study.
    std::error_code absent;
    std::filesystem::remove(looks_file(flags_, task_, c), absent);
  }
  RunResult now = run_task(
      task_, target(cell),
      {.identity = {.cell = c.name,
                    .backend = c.backend,
                    .settings = c.endpoint ? c.endpoint->settings() : "",
                    .build = build_fingerprint(),
                    .model = {}},
       .repeats = repeats,
       .concurrency = flags_.task.concurrency,
       .seed = flags_.task.seed,
       .launch = c.endpoint ? launch_ : "",
       .records = records_file(flags_, task_, c),
       .resume = flags_.task.resume || begun,
       .keep_further = flags_.until_decided || !flags_.probe_names.empty(),
       .progress = progress_printer(fmt::format("[{}/{}] {}", cell + 1, cells_.size(), c.name))});
  add_speed(now, last);
  last = std::move(now);
  return last;
}

}  // namespace cupel
