#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/assay/outcomes.h"
#include "cupel/assay/paired.h"
#include "cupel/assay/report.h"
#include "cupel/cli/assay_commands.h"
#include "cupel/cli/assay_judge.h"
#include "cupel/cli/assay_probes.h"
#include "cupel/cli/command.h"
#include "cupel/cli/report_flags.h"

namespace cupel {
namespace {

// For every other model and backend: does the backend lose more between the models than the
// reference backend does?
std::vector<Interaction> crossed(const std::vector<AssayCell>& cells,
                                 const std::vector<CellOutcomes>& outcomes, std::size_t reference) {
  const AssayCell& r = cells[reference];
  if (r.is_endpoint()) return {};
  const auto at = [&](const std::string& model, const std::string& backend) -> const CellOutcomes& {
    const auto found = std::find_if(cells.begin(), cells.end(), [&](const AssayCell& c) {
      return c.model_name == model && c.backend == backend;
    });
    return outcomes[static_cast<std::size_t>(found - cells.begin())];
  };
  std::vector<Interaction> all;
  for (const AssayCell& c : cells) {
    if (c.is_endpoint() || c.model_name == r.model_name || c.backend == r.backend) continue;
    Interaction i = interaction(at(r.model_name, c.backend), at(c.model_name, c.backend),
                                at(r.model_name, r.backend), at(c.model_name, r.backend));
    i.name =
        fmt::format("{} against {}: {} less {}", c.model_name, r.model_name, c.backend, r.backend);
    all.push_back(std::move(i));
  }
  return all;
}

// Of each comparison that had looks fixed beforehand: what it was judged at, and why it ended.
std::vector<std::string> look_notes(const LookDecision& l, SequentialBound bound) {
  std::vector<std::string> lines;
  if (bound == SequentialBound::kAnytime && l.evidence) {
    lines.push_back(
        fmt::format("Evidence after {} passes: {:.3g} against no loss, {:.3g} against a loss of "
                    "the margin (20 decides). For this item set alone.",
                    l.evidence->passes, l.evidence->against_no_loss, l.evidence->against_margin));
  } else {
    lines.push_back(fmt::format("Bounds at {:.3g} % each side.", 100 * l.look.alpha));
  }
  lines.push_back(l.reason);
  return lines;
}

std::string title(const AssayFlags& flags, const Task& task) {
  std::string repeats = flags.task.repeats == 1 ? std::string("1 repeat")
                                                : fmt::format("{} repeats", flags.task.repeats);
  if (flags.until_decided) repeats = "repeats until decided";
  return fmt::format("{}: {} items, {} shots, temperature {}, {}", task.name, task.items.size(),
                     task.shots.size(), task.temperature, repeats);
}

ExitCode run_assay(const AssayFlags& flags) {
  std::vector<AssayCell> cells = make_cells(flags);
  const std::size_t reference = find_reference(cells, flags.reference);
  Task task = flags.task.load();
  if (!flags.endpoints.empty()) flags.server.adapt(task);
  AssayJudge judge(flags, task, cells, reference);
  AssayProbes probes(flags);
  check_cells(flags, task, cells);
  const ReportFiles report_files(flags.reports);
  connect_endpoints(flags, cells);
  std::error_code failed;
  std::filesystem::create_directories(flags.records, failed);
  if (failed) throw InputError("--records", "a writable folder", flags.records);

  CellRunner runner(flags, task, cells);
  probes.run(runner, task, cells, reference);
  const AssayJudgement judgement = judge.run(runner, probes.gating());
  probes.decide(judgement.decisions, judgement.plan.alpha);

  AssayReport report{.title = title(flags, task),
                     .cells = {},
                     .reference = cells[reference].name,
                     .margin = flags.margin,
                     .comparisons = {},
                     .interactions = crossed(cells, judgement.outcomes, reference),
                     .records = {}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    report.cells.push_back(cell_row(judgement.outcomes[i], runner.result(i)));
    report.records.emplace_back(cells[i].name, records_file(flags, task, cells[i]));
  }
  report.probes = probes.comparisons();
  if (flags.until_decided) report.looks = judgement.plan.repeats;
  std::vector<Decision> decisions;
  for (const LookDecision& l : judgement.decisions) {
    decisions.push_back(l.decision);
    // A single look is judged as ever; its level is said where looks before it have used some up.
    const bool plain = !flags.until_decided && l.look.alpha == kAlpha;
    report.comparisons.push_back(
        {.comparison = l.comparison,
         .decision = l.decision,
         .notes = plain ? std::vector<std::string>() : look_notes(l, judgement.bound),
         .level = l.look.alpha});
  }
  probes.add_verdicts(decisions);
  fmt::print("{}{}", render_report(report), probes.render());
  std::vector<std::span<const Record>> records;
  for (std::size_t i = 0; i < cells.size(); ++i) records.emplace_back(runner.result(i).records);
  report_files.write(report, records);
  return exit_code(decisions);
}

}  // namespace

void add_assay_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<AssayFlags>();
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
  command
      ->add_flag("--until-decided", flags->until_decided,
                 "Repeat until every comparison is decided or repeats cannot decide it, at looks "
                 "fixed beforehand; runs only cells that are not (default: --repeats passes)")
      ->excludes(command->get_option("--repeats"));
  command
      ->add_option("--looks", flags->looks,
                   "For --until-decided: repeats in each arm at each look; fixed at the first")
      ->capture_default_str();
  command
      ->add_option("--bound", flags->bound,
                   "For --until-decided: group (group-sequential: the looks share the 5 %) or "
                   "anytime (for this item set alone)")
      ->capture_default_str();
  command
      ->add_option(
          "--probe", flags->probe_names,
          "repeatability, phase, copy, nll or stray, run on every cell; NAME:MARGIN (points, "
          "nll: nats a token) makes it gate; may be repeated (default: none)")
      ->allow_extra_args(false);
  flags->probes.add(*command);
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
