// The commands under `cupel bench`.
#pragma once

#include "cupel/cli/command.h"

namespace cupel {

void add_bench_one_batch_command(CLI::App& bench, Run& run);
void add_bench_serving_command(CLI::App& bench, Run& run);

}  // namespace cupel
