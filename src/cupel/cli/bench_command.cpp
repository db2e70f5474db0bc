#include <CLI/CLI.hpp>

#include "cupel/cli/bench_commands.h"
#include "cupel/cli/command.h"

namespace cupel {

void add_bench_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "bench", "Measures the speed of a server, ours or another: one-batch or serving");
  command->require_subcommand(1);
  add_bench_one_batch_command(*command, run);
  add_bench_serving_command(*command, run);
}

}  // namespace cupel
