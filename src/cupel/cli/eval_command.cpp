#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/outcomes.h"
#include "cupel/assay/report.h"
#include "cupel/base/fingerprint.h"
#include "cupel/cli/command.h"
#include "cupel/cli/endpoint_flags.h"
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
  std::string endpoint;
  EndpointFlags server;
  std::string records;
};

ExitCode run_on(Target& target, const Task& task, const Flags& flags, CellIdentity identity,
                const std::string& launch) {
  identity.build = build_fingerprint();
  const std::string cell = identity.cell;
  const RunResult result = run_task(task, target,
                                    {.identity = std::move(identity),
                                     .repeats = flags.task.repeats,
                                     .concurrency = flags.task.concurrency,
                                     .seed = flags.task.seed,
                                     .launch = launch,
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

ExitCode run_on_engine(const Task& task, const Flags& flags) {
  const EngineOptions options = flags.engine.options();
  Engine engine(options);
  check_prompts(task, engine.tokenizer(), engine.config());
  EngineTarget target(engine);
  const std::string backend(backend_name(options.network.backend));
  return run_on(target, task, flags,
                {.cell = model_label(options.model) + "/" + backend,
                 .backend = backend,
                 .settings = {},
                 .build = {},
                 .model = {}},
                {});
}

ExitCode run_on_endpoint(Task task, const Flags& flags) {
  flags.server.adapt(task);
  HttpTarget target(flags.server.options(flags.endpoint));
  target.check();
  // A served model is often named by its folder.
  const std::string& model = target.identity().model;
  const std::string label = model.substr(model.find_last_of('/') + 1);
  return run_on(target, task, flags,
                {.cell = (label.empty() ? model : label) + "/" + flags.server.api,
                 .backend = target.identity().backend,
                 .settings = target.settings(),
                 .build = {},
                 .model = {}},
                flags.server.launch());
}

ExitCode run_eval(const Flags& flags) {
  if (flags.task.resume && flags.records.empty()) {
    throw InputError("--resume", "--records, the file to go on with", "none");
  }
  const Task task = flags.task.load();
  return flags.endpoint.empty() ? run_on_engine(task, flags) : run_on_endpoint(task, flags);
}

}  // namespace

void add_eval_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "eval", "Runs a task on one model, here or at a server, and shows its accuracy");
  flags->task.add(*command);
  command->add_option("--records", flags->records,
                      "Write one JSON line an item and repeat here (default: none)");
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  CLI::Option* endpoint = command->add_option(
      "--endpoint", flags->endpoint,
      "Ask this server instead of an engine of our own, for example http://127.0.0.1:30000 "
      "(default: none)");
  exclude_engine_flags(*command, *endpoint);
  flags->server.add(*command);
  command->callback([=, &run] { run = [=] { return run_eval(*flags); }; });
}

}  // namespace cupel
