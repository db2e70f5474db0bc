// Flags of the commands that can ask a server.
#pragma once

#include <string>

#include "cupel/eval/http_target.h"

namespace CLI {
class App;
}

namespace cupel {

struct Task;

// How a server is reached.
struct ConnectionFlags {
  std::string api = "completions";
  std::string served_model;
  std::string api_key_env;
  double timeout = 600;

  // All but --endpoint itself, which is one URL for some commands and several for others.
  void add_connection(CLI::App& app);

  // The key itself; empty where none is wanted. Throws InputError for a variable that is not set.
  std::string api_key() const;
};

struct EndpointFlags : ConnectionFlags {
  int retries = 5;
  bool stream = false;
  bool logprobs = false;
  std::string launch_id;

  void add(CLI::App& app);

  // Throws InputError, also for a variable that is not set: its value is never shown.
  HttpTargetOptions options(const std::string& url) const;

  // --launch-id, or a random one.
  std::string launch() const;

  // Adapts a task to the interface: a chat message has no begin-of-sentence token in its text.
  void adapt(Task& task) const;
};

}  // namespace cupel
