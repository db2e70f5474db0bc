// Flags of the commands that can ask a server.
#pragma once

#include <string>

#include "cupel/eval/http_target.h"

namespace CLI {
class App;
}

namespace cupel {

struct Task;

struct EndpointFlags {
  std::string api = "completions";
  std::string served_model;
  std::string api_key_env;
  double timeout = 600;
  int retries = 5;
  bool stream = false;
  bool logprobs = false;
  std::string launch_id;

  // All but --endpoint itself, which is one URL for some commands and several for others.
  void add(CLI::App& app);

  // Throws InputError, also for a variable that is not set: its value is never shown.
  HttpTargetOptions options(const std::string& url) const;

  // --launch-id, or a random one.
  std::string launch() const;

  // Adapts a task to the interface: a chat message has no begin-of-sentence token in its text.
  void adapt(Task& task) const;
};

}  // namespace cupel
