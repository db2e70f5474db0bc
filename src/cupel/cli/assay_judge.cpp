#include "cupel/cli/assay_judge.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/assay/looks_ledger.h"
#include "cupel/assay/noise.h"
#include "cupel/base/error.h"
#include "cupel/cli/assay_commands.h"

namespace cupel {

AssayJudge::AssayJudge(const AssayFlags& flags, const Task& task,
                       const std::vector<AssayCell>& cells, std::size_t reference)
    : flags_(flags), task_(task), cells_(cells), reference_(reference) {
  if (!(flags.margin > 0 && flags.margin <= 100)) {
    throw InputError("--margin", "points above 0 and at most 100", fmt::format("{}", flags.margin));
  }
  rule_.margin = flags.margin;
  rule_.bound = parse_bound(flags.bound);
  rule_.plan.repeats = flags.until_decided ? parse_numbers(flags.looks, "--looks", 1)
                                           : std::vector<int>{flags.task.repeats};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != reference) candidates_.push_back(i);
  }
  taken_.resize(candidates_.size());
  if (keeps_ledger() && flags.task.resume) read_ledgers();
}

bool AssayJudge::keeps_ledger() const {
  return rule_.bound == SequentialBound::kGroupSequential;
}

void AssayJudge::read_ledgers() {
  const std::filesystem::path reference = records_file(flags_, task_, cells_[reference_]);
  const LookPlan asked = rule_.plan;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const std::filesystem::path records = records_file(flags_, task_, cells_[candidates_[i]]);
    const std::filesystem::path ledger = looks_file(flags_, task_, cells_[candidates_[i]]);
    if (!exists(ledger) || !exists(records) || !exists(reference)) continue;
    const StudyLooks study =
        LooksLedger(ledger).find(cells_[reference_].name, cells_[candidates_[i]].name,
                                 study_hash(read_records(reference, UnfinishedLine::kDrop),
                                            read_records(records, UnfinishedLine::kDrop)),
                                 flags_.margin, asked);
    if (study.taken.empty()) continue;
    taken_[i] = study.taken;
    rule_.plan = study.plan;  // what was fixed at the first look holds
  }
  if (flags_.until_decided && rule_.plan.repeats != asked.repeats) {
    spdlog::warn("looks after {} repeats, as fixed at the first of them",
                 list_items(rule_.plan.repeats));
  }
}

// A deterministic cell is asked once: its further repeats would be the same.
ArmAtLook AssayJudge::arm(const CellRunner& runner, std::size_t cell, int repeats) const {
  const std::string& name = cells_[cell].name;
  const bool deterministic = runner.deterministic(cell);
  if (deterministic && flags_.until_decided) {
    ArmAtLook arm{outcomes_from_records(runner.result(cell).records, name), repeats > 1, true};
    for (ItemOutcomes& item : arm.outcomes.items) {
      item.correct.assign(static_cast<std::size_t>(repeats), item.correct.front());
    }
    return arm;
  }
  const std::vector<Record>& records = runner.result(cell).records;
  return {outcomes_from_records(records, name), identical_passes(records), deterministic};
}

void AssayJudge::keep_look(const CellRunner& runner, std::size_t candidate,
                           const TakenLook& look) const {
  if (!keeps_ledger()) return;
  const std::size_t cell = candidates_[candidate];
  LooksLedger ledger(looks_file(flags_, task_, cells_[cell]));
  StudyLooks study =
      ledger.find(cells_[reference_].name, cells_[cell].name,
                  study_hash(runner.result(reference_).records, runner.result(cell).records),
                  flags_.margin, rule_.plan);
  study.plan = rule_.plan;
  if (std::find(study.taken.begin(), study.taken.end(), look) != study.taken.end()) return;
  study.taken.push_back(look);
  ledger.keep(study);
}

AssayJudgement AssayJudge::run(CellRunner& runner, std::vector<double> family) {
  rule_.family = std::move(family);
  AssayJudgement judgement{rule_.plan, rule_.bound, {}, {}};
  const auto outcomes_of = [&](std::size_t cell) {
    return outcomes_from_records(runner.result(cell).records, cells_[cell].name);
  };

  if (flags_.until_decided) {
    const auto extend = [&](std::size_t arm_index, int repeats) {
      const std::size_t cell = arm_index == 0 ? reference_ : candidates_[arm_index - 1];
      runner.run(cell, runner.deterministic(cell) ? 1 : repeats);
      return arm(runner, cell, repeats);
    };
    std::vector<bool> ended(candidates_.size());
    const auto after_look = [&](const UntilDecided& now) {
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (ended[i]) continue;
        const LookDecision& l = now.decisions[i];
        ended[i] = l.final;
        keep_look(runner, i, l.look);
        spdlog::info("{}: {}. {}", cells_[candidates_[i]].name, verdict_name(l.decision.verdict),
                     l.reason);
      }
    };
    judgement.decisions =
        run_until_decided(rule_, candidates_.size(), extend, after_look, taken_).decisions;
  } else {
    for (std::size_t i = 0; i < cells_.size(); ++i) runner.run(i, flags_.task.repeats);
    std::vector<ArmAtLook> arms;
    arms.reserve(candidates_.size());
    for (const std::size_t cell : candidates_) {
      arms.push_back(arm(runner, cell, flags_.task.repeats));
    }
    judgement.decisions =
        decide_at_look(arm(runner, reference_, flags_.task.repeats), arms, rule_, taken_);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      keep_look(runner, i, judgement.decisions[i].look);
    }
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) judgement.outcomes.push_back(outcomes_of(i));
  return judgement;
}

}  // namespace cupel
