#include "cupel/cli/bench_flags.h"

#include <CLI/CLI.hpp>

#include "cupel/base/error.h"

namespace cupel {

void BenchFlags::add(CLI::App& app) {
  app.add_option("--endpoint", endpoint, "The server, for example http://127.0.0.1:30000")
      ->required();
  connection.api = "generate";
  connection.add_connection(app);
  app.add_option(
         "--vocabulary", vocabulary,
         "Prompts are random ids below this number (default: the server's vocab_size, which "
         "Cupel tells; 129280 for DeepSeek-V4)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "Seed of prompts, lengths and arrivals")->capture_default_str();
  app.add_option("--repeats", repeats,
                 "Measure all of it so often, with other prompts of the same kind; from two on "
                 "figures are means with 95 % intervals (Student's t)")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--run-name", run_name, "Names the run in the records")->capture_default_str();
  app.add_option("--json", json, "Append one JSON line a result here, as it comes (default: none)");
  app.add_flag("--markdown", markdown, "Show the table as Markdown (default: as text)");
}

BenchTarget BenchFlags::target() const {
  return find_bench_target(checked_settings(endpoint, connection.api_key(), connection.timeout),
                           parse_api(connection.api), connection.served_model);
}

int BenchFlags::vocabulary_of(const BenchTarget& target) const {
  if (vocabulary > 0) return vocabulary;
  HttpConnection to_server(target.http);
  try {
    if (const auto told = ask_facts(to_server).vocabulary) return *told;
  } catch (const TransientError& error) {
    throw InfrastructureError("endpoint", error.what());
  }
  throw InputError("--vocabulary", "the number of token ids to draw prompts from",
                   "none, and the server does not tell");
}

std::unique_ptr<LineWriter> open_lines(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<LineWriter>(path, true);
}

}  // namespace cupel
