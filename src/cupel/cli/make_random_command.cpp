#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/base/file.h"
#include "cupel/checkpoint/random_weights.h"
#include "cupel/cli/command.h"
#include "cupel/cli/data_folder.h"

namespace cupel {

void add_make_random_command(CLI::App& app, Run& run) {
  struct Flags {
    std::string folder;
    std::string config;
    std::string tokenizer;
    std::vector<int> layer_ids;
    std::uint64_t seed = 1;
    bool headers_only = false;
    int threads = 0;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "make-random",
      "Writes a checkpoint of random weights: the true shapes of chosen layers of a model");
  command->add_option("folder", flags->folder, "Folder to make")->required();
  command
      ->add_option("--config", flags->config,
                   "config.json of the full model, or the name of a bundled one: config.0731.json, "
                   "config.preview.json")
      ->required();
  command
      ->add_option("--layer-ids", flags->layer_ids,
                   "Its layers to take, ascending, as in 2,3; each keeps its ratio and its routing")
      ->required()
      ->delimiter(',');
  command->add_option("--tokenizer", flags->tokenizer,
                      "tokenizer.json to copy (default: the one of the bundled tiny models, whose "
                      "768 tokens are then the only ones that text has)");
  command->add_option("--seed", flags->seed, "The same seed gives the same bytes")
      ->capture_default_str();
  command->add_flag("--headers-only", flags->headers_only,
                    "Shards end after their headers (default: with all data)");
  command->add_option("--threads", flags->threads, "Threads, 0 for one a hardware thread")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->callback([=, &run] {
    run = [=] {
      const auto config = find_bundled_file(flags->config, "v4-flash");
      const RandomWeights weights(
          chosen_layers_config(read_file(config), config.string(), flags->layer_ids),
          config.string(), flags->seed);
      const auto tokenizer = flags->tokenizer.empty()
                                 ? find_data_folder("") / "../models/tiny-v4-0731/tokenizer.json"
                                 : std::filesystem::path(flags->tokenizer);
      const std::uint64_t bytes = write_random_checkpoint(
          weights, flags->folder,
          {.tokenizer = tokenizer, .headers_only = flags->headers_only, .threads = flags->threads});
      std::size_t tensors = 0;
      for (const auto& shard : weights.shards()) tensors += shard.size();
      fmt::print("{}: {} tensors in {} shards, {} bytes{}\n", flags->folder, tensors,
                 weights.shards().size(), bytes,
                 flags->headers_only ? " by their headers; no data written" : "");
      return ExitCode::kPass;
    };
  });
}

}  // namespace cupel
