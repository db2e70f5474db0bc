#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/probe_verdict.h"
#include "cupel/cli/command.h"
#include "cupel/cli/endpoint_flags.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/probe_flags.h"
#include "cupel/cli/task_flags.h"
#include "cupel/eval/engine_target.h"
#include "cupel/eval/http_target.h"

namespace cupel {
namespace {

struct Flags {
  std::string probe;
  EngineFlags engine;
  TaskFlags task;
  ProbeFlags probes;
  std::string endpoint;
  EndpointFlags server;
  std::string records;
};

ExitCode run_probe(const Flags& flags) {
  const ProbeKind kind = parse_probe(flags.probe);
  flags.probes.check();
  if (!flags.records.empty()) {
    if (kind != ProbeKind::kStray) throw InputError("--records", "the probe stray", flags.probe);
    const auto records = read_records(flags.records);
    fmt::print("{}", render_probe(probe_stray(stray_answers(records), flags.probes.stray)));
    return ExitCode::kPass;
  }
  Task task = flags.task.load();
  if (flags.endpoint.empty()) {
    Engine engine(flags.engine.options());
    EngineTarget target(engine);
    fmt::print("{}", render_probe(flags.probes.run(kind, target, task, flags.task.concurrency)));
  } else {
    flags.server.adapt(task);
    HttpTarget target(flags.server.options(flags.endpoint));
    target.check();
    fmt::print("{}", render_probe(flags.probes.run(kind, target, task, flags.task.concurrency)));
  }
  return ExitCode::kPass;
}

}  // namespace

void add_probe_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  flags->task.name = "wordmath";
  CLI::App* command = app.add_subcommand(
      "probe", "Looks for what word problems cannot see: repeatability, phase, copy, nll or stray");
  command->add_option("probe", flags->probe, "repeatability, phase, copy, nll or stray")
      ->required();
  command
      ->add_option("task", flags->task.name,
                   "Where prompts and texts come from: wordmath, gsm8k or a path to JSON lines")
      ->capture_default_str();
  flags->task.add_prompts(*command);
  flags->probes.add(*command);
  command->add_option("--records", flags->records,
                      "stray: look at the answers of this file and ask nothing (default: ask)");
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  CLI::Option* endpoint =
      command->add_option("--endpoint", flags->endpoint,
                          "Ask this server instead of an engine of our own (default: none)");
  exclude_engine_flags(*command, *endpoint);
  flags->server.add(*command);
  command->callback([=, &run] { run = [=] { return run_probe(*flags); }; });
}

}  // namespace cupel
