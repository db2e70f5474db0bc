#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "cupel/base/fingerprint.h"
#include "cupel/cli/command.h"

namespace {

int fail(cupel::ExitCode code, const char* message) {
  fmt::print(stderr, "cupel: {}\n", message);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // Standard output holds results alone.
    spdlog::set_default_logger(spdlog::stderr_color_mt("cupel"));
    CLI::App app{
        "Cupel: a native engine for DeepSeek-V4-Flash, and the assay that tells an accuracy "
        "regression from noise.\nExit codes: 0 pass, 1 regression, 2 inconclusive, "
        "3 infrastructure, 4 configuration or usage."};
    app.set_version_flag("--version", cupel::build_fingerprint());
    // Not "exactly one": an unknown command is then named as what was not expected.
    app.require_subcommand(0, 1);
    cupel::Run run;
    cupel::add_assay_command(app, run);
    cupel::add_bench_command(app, run);
    cupel::add_eval_command(app, run);
    cupel::add_fetch_command(app, run);
    cupel::add_generate_command(app, run);
    cupel::add_inspect_command(app, run);
    cupel::add_logits_command(app, run);
    cupel::add_make_random_command(app, run);
    cupel::add_preflight_command(app, run);
    cupel::add_probe_command(app, run);
    cupel::add_repack_command(app, run);
    cupel::add_serve_command(app, run);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      const int status = app.exit(error);  // prints help or what is wrong
      return status == 0 ? 0 : static_cast<int>(cupel::ExitCode::kUsage);
    }
    if (!run) return fail(cupel::ExitCode::kUsage, "a command is required; see cupel --help");
    const cupel::ExitCode code = run();
    // A report that did not reach its reader must not look like a result.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      return fail(cupel::ExitCode::kInfrastructure, "standard output: cannot write");
    }
    return static_cast<int>(code);
  } catch (const cupel::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(cupel::ExitCode::kInfrastructure, "out of memory");
  } catch (const std::exception& error) {
    return fail(cupel::ExitCode::kInfrastructure, error.what());
  }
}
