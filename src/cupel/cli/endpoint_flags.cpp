#include "cupel/cli/endpoint_flags.h"

#include <cstdlib>
#include <random>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/eval/task.h"

namespace cupel {

void ConnectionFlags::add_connection(CLI::App& app) {
  app.add_option("--api", api,
                 "Interface of the server: completions (/v1/completions), chat "
                 "(/v1/chat/completions; the whole prompt as one user message, without the "
                 "begin-of-sentence token) or generate (SGLang's /generate)")
      ->capture_default_str();
  app.add_option("--served-model", served_model,
                 "Name of the model at the server (default: the only one that it names)");
  app.add_option("--api-key-env", api_key_env,
                 "Environment variable that holds the API key, sent as a bearer token (default: no "
                 "key)");
  app.add_option("--timeout", timeout, "Seconds for one answer of a server")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
}

std::string ConnectionFlags::api_key() const {
  if (api_key_env.empty()) return {};
  const char* key = std::getenv(api_key_env.c_str());
  if (key == nullptr || *key == '\0') {
    throw InputError("--api-key-env", "a variable that is set", api_key_env);
  }
  return key;
}

void EndpointFlags::add(CLI::App& app) {
  add_connection(app);
  app.add_option("--retries", retries,
                 "Further tries of a request that a server failed at (no connection, reset, "
                 "timeout, status 429 or 5xx); never for a wrong answer")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--stream", stream,
               "Ask for streamed answers, which tell the time of the first token (default: whole "
               "answers)");
  app.add_flag("--logprobs", logprobs,
               "Ask for the two best log probabilities of each token, which give the margins "
               "(default: no margins)");
  app.add_option("--launch-id", launch_id,
                 "Names the launch of the server in the records (default: random)");
}

HttpTargetOptions EndpointFlags::options(const std::string& url) const {
  return {.url = url,
          .api = parse_api(api),
          .served_model = served_model,
          .api_key = api_key(),
          .timeout_seconds = timeout,
          .retries = retries,
          .stream = stream,
          .logprobs = logprobs};
}

std::string EndpointFlags::launch() const {
  if (!launch_id.empty()) return launch_id;
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

void EndpointFlags::adapt(Task& task) const {
  if (parse_api(api) == Api::kChat) task.bos = false;
}

}  // namespace cupel
