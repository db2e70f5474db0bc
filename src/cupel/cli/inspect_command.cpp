#include <memory>

#include <CLI/CLI.hpp>

#include "cupel/checkpoint/inspect.h"
#include "cupel/cli/command.h"

namespace cupel {

void add_inspect_command(CLI::App& app, Run& run) {
  struct Flags {
    std::optional<std::string> folder;
    bool json = false;
    bool headers_only = false;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Shows a checkpoint: configuration, layers by kind, tensors used and skipped, bytes");
  command->add_option("folder", flags->folder,
                      "Checkpoint folder (default: DEEPSEEK_V4_FP4_MODEL_PATH)");
  command->add_flag("--json", flags->json, "Print JSON (default: text)");
  command->add_flag("--headers-only", flags->headers_only,
                    "Accept shards that end after their headers (default: values must be there)");
  command->callback([=, &run] {
    run = [=] {
      return static_cast<ExitCode>(
          run_inspect(resolve_model_path(flags->folder), flags->json, flags->headers_only));
    };
  });
}

}  // namespace cupel
