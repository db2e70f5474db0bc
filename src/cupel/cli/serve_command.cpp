#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/base/fingerprint.h"
#include "cupel/cli/command.h"
#include "cupel/cli/data_folder.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/interrupt.h"
#include "cupel/server/bearer_key.h"
#include "cupel/server/context.h"
#include "cupel/server/server.h"

namespace cupel {
namespace {

struct Flags {
  EngineFlags engine;
  ServerOptions server;
  std::string api_key_file;
  bool bos = false, no_bos = false;
  bool no_access_log = false;
  std::string release;
  int max_running = EngineOptions{}.max_running;
  int max_queue = EngineOptions{}.max_waiting;
  double grace = 30;
  double header_timeout = 10, body_timeout = 60, idle_timeout = 60, write_timeout = 30;
};

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Of the bundled data, where there is any.
std::filesystem::path find_prose_example() {
  try {
    return find_data_folder("") / "v4-flash" / "encoding" / "test_output_1.txt";
  } catch (const InputError&) {
    return {};
  }
}

ServerOptions server_options(const Flags& flags, const std::filesystem::path& model) {
  ServerOptions options = flags.server;
  options.model = model;
  options.api_key = load_api_key(flags.api_key_file);
  if (options.names.empty()) options.names.push_back(model_label(model));
  options.add_bos = flags.bos || (!flags.no_bos && load_add_bos(model));
  options.log_requests = !flags.no_access_log;
  if (!flags.release.empty()) {
    options.release = release_from_name(flags.release);
    if (!options.release) throw InputError("--release", "preview or 0731", flags.release);
  }
  options.prose_example = find_prose_example();
  options.grace = milliseconds_of(flags.grace);
  options.limits.header_time = milliseconds_of(flags.header_timeout);
  options.limits.body_time = milliseconds_of(flags.body_timeout);
  options.limits.idle_time = milliseconds_of(flags.idle_timeout);
  options.limits.write_time = milliseconds_of(flags.write_timeout);
  return options;
}

ExitCode run_serve(const Flags& flags) {
  EngineOptions options = flags.engine.options();
  options.max_running = flags.max_running;
  options.max_waiting = flags.max_queue;
  // Read before the model is loaded: a fault in them shows at once.
  const ServerOptions serving = server_options(flags, options.model);
  Engine engine(options);
  Server server(engine, serving);
  fmt::print("serving {} at {}\n", serving.names.front(), server.url());
  std::fflush(stdout);
  spdlog::info("{}; {}; BOS before prompts of text: {}; key: {}", build_fingerprint(),
               engine.fingerprint(), serving.add_bos ? "added" : "not added",
               serving.api_key.empty() ? "none" : "required");
  constexpr std::chrono::milliseconds kLook(50);
  while (!interrupt_requested()) std::this_thread::sleep_for(kLook);
  spdlog::info("server: stops; running requests have {} s", flags.grace);
  server.stop();
  return ExitCode::kPass;
}

void add_limit_flags(CLI::App& app, Flags& flags) {
  ServerLimits& limits = flags.server.limits;
  const auto seconds = [&](const char* name, double& value, const char* text) {
    app.add_option(name, value, text)->capture_default_str()->check(CLI::Range(0.001, 1e6));
  };
  const auto count = [&](const char* name, int& value, const char* text) {
    app.add_option(name, value, text)->capture_default_str()->check(CLI::PositiveNumber);
  };
  count("--max-running", flags.max_running, "Sequences that are computed at once");
  count("--max-queue", flags.max_queue, "Sequences that wait beyond those; then 503");
  count("--max-connections", limits.connections, "Open connections; beyond those 503");
  count("--max-sequences", limits.sequences, "Prompts times n of one request");
  count("--max-messages", limits.messages, "Messages of one conversation");
  count("--max-json-depth", limits.json_depth, "Nesting of a body, a JSON schema included");
  count("--max-logprobs", limits.top_logprobs, "Most likely tokens told of at a place");
  const auto bytes = [&](const char* name, std::size_t& value, const char* text) {
    app.add_option(name, value, text)->capture_default_str()->transform(CLI::AsSizeValue(false));
  };
  bytes("--max-body-bytes", limits.body_bytes, "Of one request, for example 32MB; beyond it 413");
  bytes("--max-header-bytes", limits.header_bytes, "Request line and headers; beyond them 431");
  seconds("--header-timeout", flags.header_timeout, "Seconds for request line and headers");
  seconds("--body-timeout", flags.body_timeout, "Seconds for a whole body");
  seconds("--idle-timeout", flags.idle_timeout, "Seconds that a connection waits for a request");
  seconds("--write-timeout", flags.write_timeout, "Seconds that a client may take no byte");
}

}  // namespace

void add_serve_command(CLI::App& app, Run& run) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "serve",
      "Serves a model over HTTP: OpenAI's completions and chat, SGLang's /generate. SIGTERM lets "
      "running requests end, then exits with code 0");
  command->add_option("--host", flags->server.host, "Address to listen at")->capture_default_str();
  command->add_option("--port", flags->server.port, "Port; 0 = any that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command->add_option("--served-model-name", flags->server.names,
                      "Names that requests may call the model by (default: the folder's)");
  command->add_option("--api-key-file", flags->api_key_file,
                      "File with the bearer token that requests must carry (default: the "
                      "environment variable CUPEL_API_KEY, or none)");
  CLI::Option* bos = command->add_flag(
      "--bos", flags->bos,
      "Put BOS before prompts of /v1/completions and /generate that are text (default: as "
      "add_bos_token in tokenizer_config.json says)");
  command->add_flag("--no-bos", flags->no_bos, "Never put it (default: see --bos)")->excludes(bos);
  command->add_option("--release", flags->release,
                      "preview or 0731: how a chat's reasoning effort is put into words (default: "
                      "as config.json says)");
  command
      ->add_option("--chat-max-tokens", flags->server.chat_tokens,
                   "Tokens of a chat's answer whose request names no limit")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--allow-unknown-parameters", flags->server.allow_unknown,
                    "Ignore parameters of requests that the server does not know (default: refuse "
                    "them)");
  command->add_flag("--no-access-log", flags->no_access_log,
                    "No line on standard error for each request (default: one, without its text)");
  command->add_flag("--log-text", flags->server.log_text,
                    "Also the bodies of requests (default: no text of clients is logged)");
  command
      ->add_option("--grace", flags->grace,
                   "Seconds that running requests have at SIGTERM or SIGINT")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  add_limit_flags(*command, *flags);
  flags->engine.add_single(*command);
  flags->engine.add_common(*command);
  command->callback([=, &run] { run = [=] { return run_serve(*flags); }; });
}

}  // namespace cupel
