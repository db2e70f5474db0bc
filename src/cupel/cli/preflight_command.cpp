#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cupel/checkpoint/plain_read.h"
#include "cupel/checkpoint/preflight.h"
#include "cupel/cli/byte_progress.h"
#include "cupel/cli/command.h"

namespace cupel {

void add_preflight_command(CLI::App& app, Run& run) {
  struct Flags {
    std::string before;
    std::string after;
    bool headers_only = false;
    bool json = false;
    bool throughput = false;
    int threads = 0;
    PreflightReportOptions report;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "preflight",
      "Tells what changes when checkpoint NEW replaces OLD: configuration by meaning, tensors, "
      "values.\nExit codes: 0 identical for the target, 1 structural change, 2 structurally inert "
      "but numerics moved or not compared (only a run decides), 3 infrastructure, 4 usage");
  command->add_option("old", flags->before, "Folder, header-only folder or config.json")
      ->required();
  command->add_option("new", flags->after, "The same, of what replaces it")->required();
  command->add_flag("--headers-only", flags->headers_only,
                    "Compare configurations and headers, read no values (default: read them)");
  command->add_flag("--json", flags->json, "Print everything as JSON (default: text)");
  command->add_option("--top", flags->report.top, "Rows of each table of the text")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--gpu-memory", flags->report.gpu_gib,
                   "GiB of a GPU, for the number of GPUs needed")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6))
      ->delimiter(',');
  command->add_option("--threads", flags->threads, "Threads, 0 for one a hardware thread")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->add_flag("--throughput", flags->throughput,
                    "Say how fast values were compared, as a ratio to a plain read of the same "
                    "files (default: do not measure)");
  command->callback([=, &run] {
    run = [=] {
      PlainRead plain;
      if (flags->throughput) plain = plain_read({flags->before, flags->after});
      const PreflightReport report =
          run_preflight(flags->before, flags->after,
                        {flags->headers_only, flags->threads, byte_progress("preflight")});
      fmt::print("{}", flags->json ? preflight_json(report, flags->report)
                                   : preflight_text(report, flags->report));
      if (flags->throughput)
        print_throughput("preflight", report.bytes_read, report.seconds, plain);
      return exit_code(report.verdict);
    };
  });
}

}  // namespace cupel
