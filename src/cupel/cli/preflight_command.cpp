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
#include "cupel/cli/data_folder.h"
#include "cupel/eval/task.h"
#include "cupel/preflight/calibration.h"
#include "cupel/preflight/numerics.h"

namespace cupel {
namespace {

struct Flags {
  std::string before;
  std::string after;
  bool headers_only = false;
  bool json = false;
  bool throughput = false;
  int threads = 0;
  bool numerics = true;
  bool numerics_asked = false;  // --numerics itself was given
  std::string prompts;
  std::string data;
  int prompt_count = 8;
  PreflightReportOptions report;
};

// Wordmath items with their shots and worked answers: the text that the bundled models know.
std::vector<std::string> bundled_prompts(const Flags& flags) {
  TaskOptions options;
  options.data_folder = find_data_folder(flags.data);
  options.limit = flags.prompt_count;
  const Task task = load_task("wordmath", options);
  std::vector<std::string> prompts;
  prompts.reserve(task.items.size());
  for (const TaskItem& item : task.items) prompts.push_back(task.prompt(item) + " " + item.answer);
  return prompts;
}

void run_numerics(const Flags& flags, PreflightReport& report) {
  if (!flags.numerics) {
    report.not_compared.emplace_back("numerics: neither model was run (--no-numerics)");
    return;
  }
  NumericsOptions options;
  options.prompts =
      flags.prompts.empty() ? bundled_prompts(flags) : load_calibration_prompts(flags.prompts);
  options.threads = flags.threads;
  options.ignore_memory = flags.numerics_asked;
  add_numerics(report, options, flags.report.top);
}

CLI::Option* add_numerics_flags(CLI::App& command, Flags& flags) {
  CLI::Option* numerics = command.add_flag(
      "--numerics,!--no-numerics", flags.numerics,
      "Run both models on calibration prompts (default: where both are whole and "
      "fit in free memory, one after the other); --numerics does not look at memory");
  command.add_option("--prompts", flags.prompts,
                     "Calibration prompts: JSON lines, {\"prompt\": text} (default: word problems "
                     "of the bundled data)");
  command.add_option("--prompt-count", flags.prompt_count, "How many of the bundled prompts")
      ->capture_default_str()
      ->check(CLI::Range(1, 1319));
  command.add_option("--data", flags.data, "Folder with wordmath/ (default: the bundled data)");
  return numerics;
}

}  // namespace

void add_preflight_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "preflight",
      "Tells what changes when checkpoint NEW replaces OLD: configuration by meaning, tensors, "
      "values, activations.\nExit codes: 0 identical for the target, 1 structural change, 2 "
      "structurally inert "
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
  CLI::Option* numerics = add_numerics_flags(*command, *flags);
  command->callback([=, &run] {
    flags->numerics_asked = numerics->count() > 0 && flags->numerics;
    run = [=] {
      PlainRead plain;
      if (flags->throughput) plain = plain_read({flags->before, flags->after});
      PreflightReport report =
          run_preflight(flags->before, flags->after,
                        {flags->headers_only, flags->threads, byte_progress("preflight")});
      run_numerics(*flags, report);
      fmt::print("{}", flags->json ? preflight_json(report, flags->report)
                                   : preflight_text(report, flags->report));
      if (flags->throughput)
        print_throughput("preflight", report.bytes_read, report.seconds, plain);
      return exit_code(report.verdict);
    };
  });
}

}  // namespace cupel
