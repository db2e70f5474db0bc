// What the probes need, for `cupel probe` and for `cupel assay --probe`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cupel/eval/probe/retrieval.h"
#include "cupel/eval/probe/stray.h"
#include "cupel/eval/task.h"

namespace CLI {
class App;
}

namespace cupel {

struct ProbeFlags {
  int prompts = 32;
  std::string texts;  // file of the nll probe
  std::string phase_form;
  std::string copy_form;
  PhaseOptions phase;
  CopyOptions copy;
  StrayOptions stray;

  void add(CLI::App& app);

  // Runs a probe that asks. Prompts and texts come from the task; `concurrency` and `bos` are the
  // task's. Throws InputError, also for stray, which looks at answers (run_stray).
  ProbeResult run(ProbeKind kind, Target& target, const Task& task, int concurrency) const;

  // Asks the first prompts of the task and looks at the answers.
  ProbeResult run_stray(Target& target, const Task& task, int concurrency) const;

  // Throws InputError for what can be seen before anything is asked.
  void check() const;

 private:
  PhaseOptions phase_options() const;
  CopyOptions copy_options() const;
  std::vector<CompletionRequest> requests(const Task& task) const;
  std::vector<std::string> nll_texts(const Task& task) const;
};

// "NAME" or "NAME:MARGIN".
struct ProbeRequest {
  ProbeKind kind = ProbeKind::kPhase;
  std::optional<double> margin;
};

// Throws InputError for an unknown name, a margin that is none, and a name given twice.
std::vector<ProbeRequest> parse_probes(const std::vector<std::string>& texts);

// One line with the figure and its interval, then the details, indented.
std::string render_probe(const ProbeResult& result);

}  // namespace cupel
