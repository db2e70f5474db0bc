#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/outcomes.h"
#include "cupel/assay/paired.h"
#include "cupel/assay/report.h"
#include "cupel/assay/verdict.h"
#include "cupel/base/fingerprint.h"
#include "cupel/cli/assay_commands.h"
#include "cupel/cli/command.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/progress.h"
#include "cupel/cli/prompt_check.h"
#include "cupel/cli/task_flags.h"
#include "cupel/eval/engine_target.h"

namespace cupel {
namespace {

struct Flags {
  EngineFlags engine;
  TaskFlags task;
  std::vector<std::string> models;
  std::vector<std::string> backends = {"packed", "unified"};
  std::string reference;
  double margin = 0;
  std::string records = "records";
};

struct Cell {
  std::string name;  // MODEL/BACKEND
  std::filesystem::path model;
  std::string model_name, backend;
  BackendKind kind = BackendKind::kUnified;
};

std::vector<Cell> make_cells(const Flags& flags) {
  std::vector<std::filesystem::path> models;
  for (const std::string& model : flags.models) models.push_back(resolve_model_path(model));
  if (models.empty()) models.push_back(resolve_model_path(std::nullopt));
  std::set<std::string> names;
  for (const auto& model : models) names.insert(model_label(model));
  const bool unique = names.size() == models.size();

  std::vector<BackendKind> kinds;
  for (const std::string& flag : flags.backends) kinds.push_back(parse_backend_flag(flag));

  std::vector<Cell> cells;
  std::set<std::string> seen;
  for (const auto& model : models) {
    for (const BackendKind kind : kinds) {
      const std::string backend(backend_name(kind));
      const std::string model_name = unique ? model_label(model) : model.string();
      cells.push_back({.name = model_name + "/" + backend,
                       .model = model,
                       .model_name = model_name,
                       .backend = backend,
                       .kind = kind});
      if (!seen.insert(cells.back().name).second) {
        throw InputError("cells", "each model and backend once", cells.back().name + " twice");
      }
    }
  }
  if (cells.size() < 2) throw InputError("cells", "at least two (models x backends)", "one");
  return cells;
}

std::size_t find_reference(const std::vector<Cell>& cells, const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].name == name) return i;
    names += (names.empty() ? "one of " : ", ") + cells[i].name;
  }
  throw InputError("--reference", names, name);
}

std::string records_file(const Flags& flags, const Task& task, const Cell& cell) {
  std::string name = fmt::format("{}.{}.jsonl", task.name, cell.name);
  std::replace(name.begin(), name.end(), '/', '.');
  return (std::filesystem::path(flags.records) / name).string();
}

// Whatever is wrong with any cell shows before the first one runs.
void check_cells(const Flags& flags, const Task& task, const std::vector<Cell>& cells) {
  std::filesystem::path checked;
  std::optional<ModelConfig> config;
  for (const Cell& cell : cells) {
    const EngineOptions options = flags.engine.options(cell.model, cell.kind);
    if (cell.model != checked) {
      config = Checkpoint(cell.model).config();
      check_prompts(task, Tokenizer::load(cell.model / "tokenizer.json"), *config);
      checked = cell.model;
    }
    make_backend(cell.kind, options.network.kv_dtype, options.network.numerics, *config);
  }
}

RunResult run_cell(const Flags& flags, const Task& task, const Cell& cell,
                   const std::string& label) {
  Engine engine(flags.engine.options(cell.model, cell.kind));
  EngineTarget target(engine);
  return run_task(task, target,
                  {.identity = {.cell = cell.name,
                                .backend = cell.backend,
                                .settings = {},
                                .build = build_fingerprint(),
                                .model = {}},
                   .repeats = flags.task.repeats,
                   .concurrency = flags.task.concurrency,
                   .seed = flags.task.seed,
                   .records = records_file(flags, task, cell),
                   .resume = flags.task.resume,
                   .progress = progress_printer(label)});
}

// For every other model and backend: does the backend lose more between the models than the
// reference backend does?
std::vector<Interaction> crossed(const std::vector<Cell>& cells,
                                 const std::vector<CellOutcomes>& outcomes, std::size_t reference) {
  const Cell& r = cells[reference];
  const auto at = [&](const std::string& model, const std::string& backend) -> const CellOutcomes& {
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const Cell& c) {
      return c.model_name == model && c.backend == backend;
    });
    return outcomes[static_cast<std::size_t>(found - cells.begin())];
  };
  std::vector<Interaction> all;
  for (const Cell& c : cells) {
    if (c.model_name == r.model_name || c.backend == r.backend) continue;
    Interaction i = interaction(at(r.model_name, c.backend), at(c.model_name, c.backend),
                                at(r.model_name, r.backend), at(c.model_name, r.backend));
    i.name =
        fmt::format("{} against {}: {} less {}", c.model_name, r.model_name, c.backend, r.backend);
    all.push_back(std::move(i));
  }
  return all;
}

ExitCode run_assay(const Flags& flags) {
  const std::vector<Cell> cells = make_cells(flags);
  const std::size_t reference = find_reference(cells, flags.reference);
  const Task task = flags.task.load();
  const VerdictRule rule{.margin = flags.margin};
  if (!(rule.margin > 0 && rule.margin <= 100)) {
    throw InputError("--margin", "points above 0 and at most 100", fmt::format("{}", flags.margin));
  }
  check_cells(flags, task, cells);
  std::error_code failed;
  std::filesystem::create_directories(flags.records, failed);
  if (failed) throw InputError("--records", "a writable folder", flags.records);

  AssayReport report{
      .title = fmt::format("{}: {} items, {} shots, temperature {}, {}", task.name,
                           task.items.size(), task.shots.size(), task.temperature,
                           flags.task.repeats == 1 ? std::string("1 repeat")
                                                   : fmt::format("{} repeats", flags.task.repeats)),
      .cells = {},
      .reference = cells[reference].name,
      .margin = flags.margin,
      .comparisons = {},
      .interactions = {},
      .records = {}};
  std::vector<CellOutcomes> outcomes;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string label = fmt::format("[{}/{}] {}", i + 1, cells.size(), cells[i].name);
    const RunResult result = run_cell(flags, task, cells[i], label);
    outcomes.push_back(outcomes_from_records(result.records, cells[i].name));
    report.cells.push_back(cell_row(outcomes.back(), result));
    report.records.emplace_back(cells[i].name, records_file(flags, task, cells[i]));
  }

  // Cupel's own cells give the same answers every time unless they sample.
  const bool deterministic = task.temperature == 0;
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != reference) {
      comparisons.push_back(compare(outcomes[reference], outcomes[i], deterministic));
    }
  }
  const std::vector<Decision> decisions = decide_family(comparisons, rule);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report.comparisons.push_back({comparisons[i], decisions[i]});
  }
  report.interactions = crossed(cells, outcomes, reference);
  fmt::print("{}", render_report(report));
  return exit_code(decisions);
}

}  // namespace

void add_assay_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "assay", "Runs a task on every model x backend and says which cells regressed");
  flags->task.add(*command);
  command->add_option("--model", flags->models,
                      "Checkpoint folders (default: DEEPSEEK_V4_FP4_MODEL_PATH)");
  command
      ->add_option("--attention-backend", flags->backends,
                   "Backends, separated by commas: reference, packed (SGLang: triton), unified "
                   "(SGLang: unified_kv_triton)")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--reference", flags->reference, "The cell to compare with, MODEL/BACKEND")
      ->required();
  command
      ->add_option("--margin", flags->margin,
                   "Largest loss that may pass, in points; declared here")
      ->required();
  command->add_option("--records", flags->records, "Folder for the records of each cell")
      ->capture_default_str();
  flags->engine.add_common(*command);
  add_statistics_commands(*command, run);
  command->callback([=, &run] {
    require_task(*command);
    // One of the statistics commands has set it already.
    if (command->get_subcommands().empty()) run = [=] { return run_assay(*flags); };
  });
}

}  // namespace cupel
