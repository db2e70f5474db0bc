#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/cli/command.h"
#include "cupel/eval/fetch.h"

namespace cupel {
namespace {

struct Flags {
  std::string name;
  std::string path;
  std::string url{kGsm8kTest.url};
  std::string sha256{kGsm8kTest.sha256};
};

ExitCode run_fetch(const Flags& flags) {
  if (flags.name != kGsm8kTest.name) {
    throw InputError("what to fetch", kGsm8kTest.name, flags.name);
  }
  const bool hex = flags.sha256.size() == 64 &&
                   flags.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex) throw InputError("--sha256", "64 hexadecimal digits in lower case", flags.sha256);
  const std::size_t bytes = fetch_file(flags.url, flags.sha256, flags.path);
  fmt::print("{}: {} bytes, SHA-256 {}\n", flags.path, bytes, flags.sha256);
  return ExitCode::kPass;
}

}  // namespace

void add_fetch_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("fetch", "Fetches a task's file over the network and checks it");
  command->add_option("name", flags->name, "gsm8k: the 1,319 questions of its test split")
      ->required();
  command->add_option("path", flags->path, "File to write; appears whole or not at all")
      ->required();
  command->add_option("--url", flags->url, "Where it is")->capture_default_str();
  command->add_option("--sha256", flags->sha256, "What it must be")->capture_default_str();
  command->callback([=, &run] { run = [=] { return run_fetch(*flags); }; });
}

}  // namespace cupel
