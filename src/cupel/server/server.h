// A model served over HTTP: OpenAI's completions and chat, SGLang's /generate, health, metrics.
#pragma once

#include <memory>

#include "cupel/engine/engine.h"
#include "cupel/server/options.h"

namespace cupel {

class Server {
 public:
  // Begins to serve. The engine must outlive this and is not touched by others meanwhile. Throws
  // InputError for an address that cannot be had, or a checkpoint's file that is not as expected.
  Server(Engine& engine, ServerOptions options);
  // As stop() without any time for running requests.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // "http://127.0.0.1:30000"
  std::string url() const;

  // Takes no further requests; running ones may end within options.grace, then they are answered by
  // an error. Returns when all is over.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cupel
