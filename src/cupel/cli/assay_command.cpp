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
#include "cupel/cli/endpoint_flags.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/progress.h"
#include "cupel/cli/prompt_check.h"
#include "cupel/cli/report_flags.h"
#include "cupel/cli/task_flags.h"
#include "cupel/eval/engine_target.h"

namespace cupel {
namespace {

struct Flags {
  EngineFlags engine;
  TaskFlags task;
  std::vector<std::string> models;
  std::vector<std::string> backends = {"packed", "unified"};
  std::vector<std::string> endpoints;  // NAME=URL
  EndpointFlags server;
  std::string reference;
  double margin = 0;
  std::string records = "records";
  ReportFlags reports;
};

// A model on a backend, or an endpoint.
struct Cell {
  std::string name;  // MODEL/BACKEND, or as the endpoint was named
  std::filesystem::path model;
  std::string model_name, backend;
  BackendKind kind = BackendKind::kUnified;
  std::shared_ptr<HttpTarget> endpoint;  // null for a model
};

void add_model_cells(const Flags& flags, std::vector<Cell>& cells) {
  std::vector<std::filesystem::path> models;
  models.reserve(flags.models.size());
  for (const std::string& model : flags.models) models.push_back(resolve_model_path(model));
  if (models.empty()) models.push_back(resolve_model_path(std::nullopt));
  std::set<std::string> names;
  for (const auto& model : models) names.insert(model_label(model));
  const bool unique = names.size() == models.size();

  std::vector<BackendKind> kinds;
  kinds.reserve(flags.backends.size());
  for (const std::string& flag : flags.backends) kinds.push_back(parse_backend_flag(flag));

  for (const auto& model : models) {
    for (const BackendKind kind : kinds) {
      const std::string backend(backend_name(kind));
      const std::string model_name = unique ? model_label(model) : model.string();
      cells.push_back({.name = fmt::format("{}/{}", model_name, backend),
                       .model = model,
                       .model_name = model_name,
                       .backend = backend,
                       .kind = kind,
                       .endpoint = {}});
    }
  }
}

// The servers are asked later: a mistake elsewhere shows first.
void add_endpoint_cells(const Flags& flags, std::vector<Cell>& cells) {
  for (const std::string& flag : flags.endpoints) {
    const std::size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (equals == std::string::npos || name.empty() || name.find("://") != std::string::npos) {
      // Not the flag itself: a URL may hold a password.
      throw InputError("--endpoint", "NAME=URL", "no name before the URL");
    }
    parse_endpoint(flag.substr(equals + 1));
    cells.push_back({.name = name,
                     .model = {},
                     .model_name = {},
                     .backend = {},
                     .kind = BackendKind::kUnified,
                     .endpoint = {}});
  }
}

std::string file_label(const Cell& cell) {
  std::string name = cell.name;
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

std::vector<Cell> make_cells(const Flags& flags) {
  std::vector<Cell> cells;
  // Without endpoints the environment may name the model.
  if (!flags.models.empty() || flags.endpoints.empty()) add_model_cells(flags, cells);
  if (!cells.empty() && !flags.endpoints.empty() && parse_api(flags.server.api) == Api::kChat) {
    throw InputError("--api", "completions or generate beside --model: a chat prompt is another",
                     flags.server.api);
  }
  add_endpoint_cells(flags, cells);
  std::set<std::string> seen;  // as files are named
  for (const Cell& cell : cells) {
    if (!seen.insert(file_label(cell)).second) {
      throw InputError("cells", "each model and backend or endpoint once", cell.name + " twice");
    }
  }
  if (cells.size() < 2) {
    throw InputError("cells", "at least two (models x backends, endpoints)", "one");
  }
  return cells;
}

bool is_endpoint(const Cell& cell) {
  return cell.model.empty();
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
  return (std::filesystem::path(flags.records) /
          fmt::format("{}.{}.jsonl", task.name, file_label(cell)))
      .string();
}

// Whatever is wrong with any cell shows before the first one runs.
void check_cells(const Flags& flags, const Task& task, const std::vector<Cell>& cells) {
  std::filesystem::path checked;
  std::optional<ModelConfig> config;
  for (const Cell& cell : cells) {
    if (is_endpoint(cell)) continue;
    const EngineOptions options = flags.engine.options(cell.model, cell.kind);
    if (cell.model != checked) {
      config = Checkpoint(cell.model).config();
      check_prompts(task, Tokenizer::load(cell.model / "tokenizer.json"), *config);
      checked = cell.model;
    }
    make_backend(cell.kind, options.network.kv_dtype, options.network.numerics, *config);
  }
}

// Asks every endpoint what it is and for a token.
void connect_endpoints(const Flags& flags, std::vector<Cell>& cells) {
  std::size_t next = 0;
  for (Cell& cell : cells) {
    if (!is_endpoint(cell)) continue;
    const std::string& flag = flags.endpoints[next++];
    cell.endpoint =
        std::make_shared<HttpTarget>(flags.server.options(flag.substr(flag.find('=') + 1)));
    cell.endpoint->check();
    cell.backend = cell.endpoint->identity().backend;
  }
}

RunResult run_cell(const Flags& flags, const Task& task, const Cell& cell, const std::string& label,
                   const std::string& launch) {
  std::optional<Engine> engine;
  std::shared_ptr<Target> target = cell.endpoint;
  if (!target) {
    engine.emplace(flags.engine.options(cell.model, cell.kind));
    target = std::make_shared<EngineTarget>(*engine);
  }
  return run_task(task, *target,
                  {.identity = {.cell = cell.name,
                                .backend = cell.backend,
                                .settings = cell.endpoint ? cell.endpoint->settings() : "",
                                .build = build_fingerprint(),
                                .model = {}},
                   .repeats = flags.task.repeats,
                   .concurrency = flags.task.concurrency,
                   .seed = flags.task.seed,
                   .launch = cell.endpoint ? launch : "",
                   .records = records_file(flags, task, cell),
                   .resume = flags.task.resume,
                   .progress = progress_printer(label)});
}

// For every other model and backend: does the backend lose more between the models than the
// reference backend does?
std::vector<Interaction> crossed(const std::vector<Cell>& cells,
                                 const std::vector<CellOutcomes>& outcomes, std::size_t reference) {
  const Cell& r = cells[reference];
  if (is_endpoint(r)) return {};
  const auto at = [&](const std::string& model, const std::string& backend) -> const CellOutcomes& {
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const Cell& c) {
      return c.model_name == model && c.backend == backend;
    });
    return outcomes[static_cast<std::size_t>(found - cells.begin())];
  };
  std::vector<Interaction> all;
  for (const Cell& c : cells) {
    if (is_endpoint(c) || c.model_name == r.model_name || c.backend == r.backend) continue;
    Interaction i = interaction(at(r.model_name, c.backend), at(c.model_name, c.backend),
                                at(r.model_name, r.backend), at(c.model_name, r.backend));
    i.name =
        fmt::format("{} against {}: {} less {}", c.model_name, r.model_name, c.backend, r.backend);
    all.push_back(std::move(i));
  }
  return all;
}

ExitCode run_assay(const Flags& flags) {
  std::vector<Cell> cells = make_cells(flags);
  const std::size_t reference = find_reference(cells, flags.reference);
  Task task = flags.task.load();
  if (!flags.endpoints.empty()) flags.server.adapt(task);
  const VerdictRule rule{.margin = flags.margin};
  if (!(rule.margin > 0 && rule.margin <= 100)) {
    throw InputError("--margin", "points above 0 and at most 100", fmt::format("{}", flags.margin));
  }
  check_cells(flags, task, cells);
  const ReportFiles report_files(flags.reports);
  connect_endpoints(flags, cells);
  const std::string launch = flags.server.launch();
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
  std::vector<RunResult> results;
  std::vector<CellOutcomes> outcomes;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string label = fmt::format("[{}/{}] {}", i + 1, cells.size(), cells[i].name);
    results.push_back(run_cell(flags, task, cells[i], label, launch));
    const RunResult& result = results.back();
    outcomes.push_back(outcomes_from_records(result.records, cells[i].name));
    report.cells.push_back(cell_row(outcomes.back(), result));
    report.records.emplace_back(cells[i].name, records_file(flags, task, cells[i]));
  }

  // Cupel's own cells give the same answers every time unless they sample; of a server that is not
  // known.
  const auto deterministic = [&](const Cell& cell) {
    return task.temperature == 0 && !is_endpoint(cell);
  };
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != reference) {
      comparisons.push_back(compare(outcomes[reference], outcomes[i],
                                    deterministic(cells[reference]) && deterministic(cells[i])));
    }
  }
  const std::vector<Decision> decisions = decide_family(comparisons, rule);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    report.comparisons.push_back({.comparison = comparisons[i], .decision = decisions[i]});
  }
  report.interactions = crossed(cells, outcomes, reference);
  fmt::print("{}", render_report(report));
  std::vector<std::span<const Record>> records;
  for (const RunResult& result : results) records.emplace_back(result.records);
  report_files.write(report, records);
  return exit_code(decisions);
}

}  // namespace

void add_assay_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "assay",
      "Runs a task on every model x backend and every endpoint and says which cells regressed");
  flags->task.add(*command);
  command->add_option("--model", flags->models,
                      "Checkpoint folders (default: DEEPSEEK_V4_FP4_MODEL_PATH, unless there are "
                      "endpoints)");
  command
      ->add_option("--attention-backend", flags->backends,
                   "Backends, separated by commas: reference, packed (SGLang: triton), unified "
                   "(SGLang: unified_kv_triton)")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option(
          "--endpoint", flags->endpoints,
          "NAME=URL of a server as a further cell, for example old=http://127.0.0.1:30000; "
          "may be repeated (default: none)")
      ->allow_extra_args(false);
  flags->server.add(*command);
  command
      ->add_option("--reference", flags->reference,
                   "The cell to compare with: MODEL/BACKEND, or the name of an endpoint")
      ->required();
  command
      ->add_option("--margin", flags->margin,
                   "Largest loss that may pass, in points; declared here")
      ->required();
  command->add_option("--records", flags->records, "Folder for the records of each cell")
      ->capture_default_str();
  flags->reports.add(*command);
  flags->engine.add_common(*command);
  add_statistics_commands(*command, run);
  command->callback([=, &run] {
    require_task(*command);
    // One of the statistics commands has set it already.
    if (command->get_subcommands().empty()) run = [=] { return run_assay(*flags); };
  });
}

}  // namespace cupel
