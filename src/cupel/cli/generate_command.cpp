#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cupel/base/file.h"
#include "cupel/cli/command.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/sampling_flags.h"
#include "cupel/eval/task.h"
#include "cupel/text/constraint/grammar_constraint.h"
#include "cupel/text/constraint/json_schema.h"

namespace cupel {
namespace {

struct Flags {
  EngineFlags engine;
  std::string prompt;
  bool no_bos = false;
  bool stats = false;
  GenerationRequest request;
  std::string json_schema;
};

std::shared_ptr<const TokenConstraint> schema_of(const std::string& file,
                                                 const Tokenizer& tokenizer) {
  const auto schema = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
  if (schema.is_discarded()) throw InputError(file, "JSON", "something else");
  Grammar grammar;
  grammar.set_root(add_json_schema(grammar, schema, file));
  return make_constraint(std::move(grammar),
                         std::make_shared<const ConstraintVocabulary>(tokenizer), file);
}

ExitCode run_generate(const Flags& flags) {
  Engine engine(flags.engine.options());
  GenerationRequest request = flags.request;
  const std::string bos(flags.no_bos ? "" : kBosText);
  request.prompt_ids = engine.tokenizer().encode(bos + flags.prompt);
  if (!flags.json_schema.empty()) {
    request.constraint = schema_of(flags.json_schema, engine.tokenizer());
  }
  Generation result;
  engine.generate({&request, 1}, 1, [&](std::size_t, const Generation& g) { result = g; });
  if (result.finish == FinishReason::kError) {
    throw InfrastructureError("generate", result.error);
  }
  fmt::print("{}\n", result.text);
  if (flags.stats) {
    const double decode = result.total_seconds - result.first_token_seconds;
    const auto decoded = static_cast<double>(result.output_ids.size() - 1);
    fmt::print(stderr,
               "{} prompt tokens, first token after {:.3f} s; {} new tokens, {:.1f} tokens/s; "
               "smallest margin {:.4f} at token {}\n",
               request.prompt_ids.size(), result.first_token_seconds, result.output_ids.size(),
               decode > 0 ? decoded / decode : 0.0, result.min_margin, result.min_margin_step);
  }
  return ExitCode::kPass;
}

}  // namespace

void add_generate_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("generate", "Continues a prompt");
  command->add_option("--prompt", flags->prompt, "Text to continue; special tokens are recognised")
      ->required();
  command->add_flag("--no-bos", flags->no_bos,
                    "Do not put the begin-of-sentence token before the prompt (default: put it)");
  command->add_option("--max-new-tokens", flags->request.max_new_tokens, "Limit of new tokens")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  add_sampling_flags(*command, flags->request.sampling);
  command->add_flag("--ignore-eos", flags->request.ignore_eos,
                    "Go on after the end-of-sentence token (default: stop there)");
  command
      ->add_option(
          "--stop", flags->request.stop,
          "Text that ends the output and is not part of it; may be repeated (default: none)")
      ->allow_extra_args(false);
  command->add_option("--json-schema", flags->json_schema,
                      "File with a JSON schema: the output is a value of it (default: free text)");
  command->add_flag("--stats", flags->stats,
                    "Print token counts, speed and margin on standard error (default: do not)");
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  command->callback([=, &run] { run = [=] { return run_generate(*flags); }; });
}

}  // namespace cupel
