#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/outcomes.h"
#include "cupel/assay/report.h"
#include "cupel/base/fingerprint.h"
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
  std::string records;
};

ExitCode run_eval(const Flags& flags) {
  if (flags.task.resume && flags.records.empty()) {
    throw InputError("--resume", "--records, the file to go on with", "none");
  }
  const Task task = flags.task.load();
  const EngineOptions options = flags.engine.options();
  Engine engine(options);
  check_prompts(task, engine.tokenizer(), engine.config());
  EngineTarget target(engine);
  const std::string backend(backend_name(options.network.backend));
  const std::string cell = model_label(options.model) + "/" + backend;
  const RunResult result = run_task(task, target,
                                    {.identity = {.cell = cell,
                                                  .backend = backend,
                                                  .settings = {},
                                                  .build = build_fingerprint(),
                                                  .model = {}},
                                     .repeats = flags.task.repeats,
                                     .concurrency = flags.task.concurrency,
                                     .seed = flags.task.seed,
                                     .records = flags.records,
                                     .resume = flags.task.resume,
                                     .progress = progress_printer(cell)});
  AssayReport report{.title = fmt::format("{}: {} items, {} shots", task.name, task.items.size(),
                                          task.shots.size()),
                     .cells = {cell_row(outcomes_from_records(result.records, cell), result)},
                     .reference = {},
                     .margin = 0,
                     .comparisons = {},
                     .interactions = {},
                     .records = {}};
  if (!flags.records.empty()) report.records.emplace_back(cell, flags.records);
  fmt::print("{}", render_report(report));
  return ExitCode::kPass;
}

}  // namespace

void add_eval_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("eval", "Runs a task on one model and shows its accuracy");
  flags->task.add(*command);
  command->add_option("--records", flags->records,
                      "Write one JSON line an item and repeat here (default: none)");
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  command->callback([=, &run] { run = [=] { return run_eval(*flags); }; });
}

}  // namespace cupel
