// What a command gives main.cpp: its flags, and what to run once they are parsed.
#pragma once

#include <functional>

#include "cupel/base/error.h"

namespace CLI {
class App;
}

namespace cupel {

// Set by the command that the user chose.
using Run = std::function<ExitCode()>;

// Each adds its subcommand to `app`; parsing it sets `run`.
void add_assay_command(CLI::App& app, Run& run);
void add_bench_command(CLI::App& app, Run& run);
void add_eval_command(CLI::App& app, Run& run);
void add_fetch_command(CLI::App& app, Run& run);
void add_generate_command(CLI::App& app, Run& run);
void add_inspect_command(CLI::App& app, Run& run);
void add_logits_command(CLI::App& app, Run& run);
void add_make_random_command(CLI::App& app, Run& run);
void add_preflight_command(CLI::App& app, Run& run);
void add_probe_command(CLI::App& app, Run& run);
void add_repack_command(CLI::App& app, Run& run);
void add_serve_command(CLI::App& app, Run& run);

}  // namespace cupel
