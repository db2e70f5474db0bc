#include <filesystem>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/checkpoint/safetensors.h"
#include "cupel/cli/command.h"
#include "cupel/cli/engine_flags.h"

namespace cupel {
namespace {

struct Flags {
  EngineFlags engine;
  std::string ids, out;
};

struct Line {
  std::vector<std::int32_t> prompt, feed;
};

std::vector<std::int32_t> parse_ids(const nlohmann::json& object, const char* key, bool required,
                                    int vocab, const std::string& where) {
  const std::string place = fmt::format("{}, {}", where, key);
  if (!object.contains(key)) {
    if (required) throw InputError(place, "a list of token ids", "nothing");
    return {};
  }
  const nlohmann::json& list = object.at(key);
  if (!list.is_array()) throw InputError(place, "a list of token ids", list.dump());
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= vocab) {
      throw InputError(fmt::format("{}[{}]", place, ids.size()),
                       fmt::format("an id in [0, {})", vocab), id.dump());
    }
    ids.push_back(id.get<std::int32_t>());
  }
  if (required && ids.empty()) throw InputError(place, "at least one token id", "[]");
  return ids;
}

std::vector<Line> read_lines(const std::string& path, const ModelConfig& config) {
  std::ifstream file(path);
  if (!file) throw InputError(path, "a readable file of JSON lines", "none");
  std::vector<Line> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    const auto object = nlohmann::json::parse(text, nullptr, false);
    if (!object.is_object()) {
      throw InputError(where, R"(an object {"prompt_ids": [...], "feed_ids": [...]})",
                       text.substr(0, 80));
    }
    Line line{.prompt = parse_ids(object, "prompt_ids", true, config.vocab_size, where),
              .feed = parse_ids(object, "feed_ids", false, config.vocab_size, where)};
    const auto total = static_cast<std::int64_t>(line.prompt.size() + line.feed.size());
    if (total > config.max_position_embeddings) {
      throw InputError(where, fmt::format("at most {} ids", config.max_position_embeddings),
                       fmt::format("{}", total));
    }
    lines.push_back(std::move(line));
  }
  if (lines.empty()) throw InputError(path, "at least one line", "an empty file");
  return lines;
}

// Shows before the work is done whether its result can be written.
void check_writable(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw InputError(path, "a file to write", "a folder");
  const AtomicFile probe(path);
}

ExitCode run_logits(const Flags& flags) {
  Engine engine(flags.engine.options());
  const auto lines = read_lines(flags.ids, engine.config());
  check_writable(flags.out);
  std::vector<std::vector<float>> results;
  std::vector<TensorToWrite> tensors;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    results.push_back(engine.logits(lines[n].prompt, lines[n].feed));
    tensors.push_back(
        {.name = std::to_string(n),
         .dtype = Dtype::kF32,
         .shape = {static_cast<std::int64_t>(1 + lines[n].feed.size()), engine.config().vocab_size},
         .data = std::as_bytes(std::span(results.back()))});
  }
  write_safetensors(flags.out, tensors);
  return ExitCode::kPass;
}

}  // namespace

void add_logits_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "logits", "Writes logits for given token ids, for comparison with other programs");
  command
      ->add_option(
          "--ids", flags->ids,
          "JSON lines {\"prompt_ids\": [...], \"feed_ids\": [...]}; feed_ids, optional, are "
          "fed one at a time")
      ->required();
  command
      ->add_option(
          "--out", flags->out,
          "Safetensors file: tensor N, [1 + fed, vocab] float32, for line N counted from 0")
      ->required();
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  command->callback([=, &run] { run = [=] { return run_logits(*flags); }; });
}

}  // namespace cupel
