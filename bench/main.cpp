// cupel_bench: how near the kernels come to what the machine can do. Ratios of one run only.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "benchmarks.h"
#include "yardstick.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/kernels/cpu/cpu_executor.h"
#include "cupel/kernels/isa.h"

int main(int argc, char** argv) {
  using cupel::bench::Settings;
  // A run that is cut short shows what it has measured.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::map<std::string, void (*)(const Settings&)> benchmarks = {
      {"one-row", cupel::bench::one_row},       {"many-rows", cupel::bench::many_rows},
      {"model", cupel::bench::model},           {"contract", cupel::bench::contract},
      {"context", cupel::bench::context},       {"wordmath", cupel::bench::wordmath},
      {"constraint", cupel::bench::constraint},
  };
  std::vector<std::string> names;
  for (const auto& [name, run] : benchmarks) names.push_back(name);

  std::string name, isa = "auto";
  int threads = 0;
  Settings settings;
  CLI::App app{"Benchmarks: ratios between figures of one run, medians of repeats"};
  app.add_option("benchmark", name, "What to measure")->required()->check(CLI::IsMember(names));
  app.add_option("--isa", isa, "auto, avx2, avx512 or avx512-bf16")->capture_default_str();
  app.add_option("--threads", threads, "0: one a hardware thread")->check(CLI::Range(0, 1024));
  app.add_option("--repeats", settings.repeats, "Timed runs of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--load", settings.load, "model: a checkpoint folder, or random")
      ->capture_default_str();
  app.add_option("--config", settings.config, "model: config.json that random takes layers of")
      ->capture_default_str();
  app.add_option("--layer-ids", settings.layer_ids, "model: those layers")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--vocabulary", settings.vocabulary,
                 "model: vocabulary of random; 0: the true one, 2 GB of embedding and head");
  app.add_option("--weights", settings.weights, "model: repack or map, of a checkpoint folder")
      ->capture_default_str();
  app.add_option("--cupel", settings.cupel, "wordmath: the program")->capture_default_str();
  app.add_option("--tokens", settings.tokens, "model: length of the prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--product", settings.product,
                 "one-row, many-rows, contract: products whose name holds this");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(cupel::ExitCode::kUsage);
  }
  try {
    cupel::set_isa(cupel::parse_isa(isa));
    cupel::bench::choose_sgemm_core(std::string(cupel::active_isa()), argv);
    cupel::CpuExecutor executor(threads);
    settings.executor = &executor;
    settings.pool = &executor.host_threads();
    benchmarks.at(name)(settings);
  } catch (const cupel::Error& error) {
    fmt::print(stderr, "cupel_bench: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "cupel_bench: {}\n", error.what());
    return static_cast<int>(cupel::ExitCode::kInfrastructure);
  }
  return 0;
}
