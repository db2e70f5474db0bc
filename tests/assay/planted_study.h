// Studies of a planted endpoint, by the code that the commands run: runner, records, statistics.
#pragma once

#include "support/planted.h"

#include "cupel/assay/outcomes.h"
#include "cupel/assay/verdict.h"

namespace cupel::test {

// One cell, asked `repeats` times.
CellOutcomes run_planted(const Planted& planted, int repeats);

struct PlantedCounts {
  int studies = 0;
  int covered = 0;       // u, known from 200 repeats, within the reported 95 % interval
  int called = 0;        // REGRESSION where 2 points are lost
  int false_alarms = 0;  // REGRESSION where nothing is
};

// `studies` seeds from `first` on. The loss is planned at 80 % power for a margin of 1 point.
PlantedCounts run_planted_studies(int unstable, double rate, int studies, std::uint64_t first);

}  // namespace cupel::test
