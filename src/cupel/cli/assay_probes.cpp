#include "cupel/cli/assay_probes.h"

#include <algorithm>

#include <fmt/format.h>

#include "cupel/cli/assay_commands.h"

namespace cupel {
AssayProbes::AssayProbes(const AssayFlags& flags)
    : flags_(flags), requests_(parse_probes(flags.probe_names)) {
  flags.probes.check();
  const bool nll = std::any_of(requests_.begin(), requests_.end(), [](const ProbeRequest& request) {
    return request.kind == ProbeKind::kNll;
  });
  if (nll && !flags.endpoints.empty() && parse_api(flags.server.api) == Api::kChat) {
    throw InputError("--probe nll", "--api completions or generate", flags.server.api);
  }
}

void AssayProbes::run(CellRunner& runner, const Task& task, const std::vector<AssayCell>& cells,
                      std::size_t reference) {
  // All probes of a cell together: its engine is loaded once.
  std::vector<std::vector<ProbeResult>> results(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const ProbeRequest& request : requests_) {
      results[i].push_back(
          request.kind == ProbeKind::kStray
              ? probe_stray(stray_answers(runner.run(i, 1).records), flags_.probes.stray)
              : flags_.probes.run(request.kind, runner.target(i), task, flags_.task.concurrency));
      probed_.push_back({cells[i].name, results[i].back()});
    }
  }
  for (std::size_t p = 0; p < requests_.size(); ++p) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i == reference) continue;
      comparisons_.push_back(compare_probes(results[reference][p], results[i][p],
                                            cells[reference].name, cells[i].name));
      comparisons_.back().margin = requests_[p].margin;
    }
  }
}

void AssayProbes::decide(std::span<const LookDecision> accuracy, double alpha) {
  std::vector<double> family;
  for (const LookDecision& l : accuracy) {
    // At the level of a single look; a look without a level shows nothing.
    const double p = l.look.alpha > 0 ? l.decision.p_regression * alpha / l.look.alpha : 1;
    family.push_back(std::min(1.0, p));
  }
  decide_probes(comparisons_, family, alpha);
}

void AssayProbes::add_verdicts(std::vector<Decision>& decisions) const {
  for (const ProbeComparison& c : comparisons_) {
    if (!c.verdict) continue;
    decisions.emplace_back();
    decisions.back().verdict = *c.verdict;
  }
}

std::string AssayProbes::render() const {
  if (probed_.empty()) return {};
  std::string text = "\nProbes:\n";
  for (const Probed& probed : probed_) text += probed.cell + ", " + render_probe(probed.result);
  if (comparisons_.empty()) return text;
  text += fmt::format(
      "\nProbes compared prompt by prompt with {} (positive: worse; points, nll: nats a token):\n",
      comparisons_.front().reference);
  for (const ProbeComparison& c : comparisons_) {
    text += fmt::format("  {}, {}\n", c.candidate, probe_sentence(c));
    if (c.verdict == Verdict::kInconclusive) {
      text += fmt::format("    What would decide: {}.\n", c.remedy);
    }
  }
  return text;
}

}  // namespace cupel
