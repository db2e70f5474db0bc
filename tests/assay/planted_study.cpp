#include "assay/planted_study.h"

#include "cupel/assay/noise.h"
#include "cupel/assay/plan.h"
#include "cupel/eval/runner.h"

namespace cupel::test {
namespace {

constexpr int kKnownFrom = 200;
constexpr int kNoiseRepeats = 4;
constexpr int kDead = 26;  // 2 points of 1,319 items, to the item
constexpr int kMost = 64;

// 4 * sum p(1 - p), unbiased, without the other items, which never change.
double known_unstable(const Planted& planted) {
  PlantedAnswers answers(planted);
  double sum = 0;
  for (int item = 0; item < planted.unstable; ++item) {
    int right = 0;
    for (int r = 0; r < kKnownFrom; ++r) right += answers.right(item) ? 1 : 0;
    sum += 4.0 * right * (kKnownFrom - right) / kKnownFrom / (kKnownFrom - 1);
  }
  return sum;
}

Verdict judge(const Planted& reference, const Planted& candidate, int repeats) {
  return decide(compare(run_planted(reference, repeats), run_planted(candidate, repeats)),
                {.margin = 1})
      .verdict;
}

}  // namespace

CellOutcomes run_planted(const Planted& planted, int repeats) {
  PlantedTarget target(planted);
  const Task task = planted_task(planted.items);
  RunOptions options;
  options.identity.cell = "planted";
  options.repeats = repeats;
  const RunResult result = run_task(task, target, options);
  return outcomes_from_records(result.records, "planted");
}

PlantedCounts run_planted_studies(int unstable, double rate, int studies, std::uint64_t first) {
  PlantedCounts counts;
  Planted planted{.unstable = unstable, .rate = rate};
  const Study study{
      .items = planted.items, .unstable = planted.effective_unstable(), .changed_squares = kDead};
  const double loss = 100.0 * kDead / planted.items;
  const int repeats = repeats_to_regression(study, loss, kMost).value_or(kMost);
  for (int i = 0; i < studies; ++i) {
    planted.seed = 4 * (first + static_cast<std::uint64_t>(i));
    ++counts.studies;
    const double known = known_unstable(planted);
    planted.seed += 1;
    const RunNoise noise = run_noise(run_planted(planted, kNoiseRepeats));
    counts.covered += noise.unstable95.low <= known && known <= noise.unstable95.high ? 1 : 0;
    Planted other = planted;
    other.seed += 1;
    counts.false_alarms += judge(planted, other, repeats) == Verdict::kRegression ? 1 : 0;
    other.dead = kDead;
    other.seed += 1;
    counts.called += judge(planted, other, repeats) == Verdict::kRegression ? 1 : 0;
  }
  return counts;
}

}  // namespace cupel::test
