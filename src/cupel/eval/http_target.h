// A server as a target of an evaluation: SGLang, vLLM, or any with the OpenAI interfaces.
#pragma once

#include <memory>
#include <string>

#include "cupel/eval/endpoint.h"
#include "cupel/eval/http_connection.h"
#include "cupel/eval/protocol.h"
#include "cupel/eval/server_identity.h"
#include "cupel/eval/target.h"

namespace cupel {

struct HttpTargetOptions {
  std::string url;  // parse_endpoint()
  Api api = Api::kCompletions;
  std::string served_model;      // empty: the one that the server names
  std::string api_key;           // empty: none
  double timeout_seconds = 600;  // of one try of one request
  int retries = 5;  // further tries of a request after refused, reset, timeout, 429, 5xx
  double backoff_seconds = 0.5;  // before the first of them; doubles up to 30 s, +- 50 % by chance
  bool stream = false;
  bool logprobs = false;
};

// Failures that may pass (refused, reset, cut, timeout, 429, 5xx) are tried again and counted in
// Completion::retries; a request that used up its tries is reported as kError. When the server
// cannot be reached (no answer to any request since that one began), the requests that were not
// asked yet are reported as kError at once. Any other reply that is no answer (another status, no
// JSON, missing members) is a mistake of configuration: no further request is sent, those on
// their way are waited for, and InputError is thrown.
//
// Times are of the try that succeeded. Where the server does not tell: no output ids, NaN for
// min_margin, queue_seconds and, without streaming, first_token_seconds.
class HttpTarget final : public Target {
 public:
  // Asks the server what it is. Throws InputError, and InfrastructureError if it does not answer.
  explicit HttpTarget(const HttpTargetOptions& options);

  // Asks for one token, so that a wrong path, key or model shows before anything is written.
  // Throws InputError or InfrastructureError.
  void check();

  void complete(std::span<const CompletionRequest> requests, int concurrency,
                const std::function<void(std::size_t, const Completion&)>& done) override;

  // One text after the other. Only /v1/completions (echo) and /generate have them.
  std::vector<TextLikelihood> likelihoods(std::span<const std::string> texts) override;

  // "served=NAME version=... ": what ServerIdentity holds.
  std::string model_fingerprint() const override;
  const ServerIdentity& identity() const { return identity_; }
  // For CellIdentity::settings: the interface and, for chat, the form of the prompt.
  std::string settings() const;

 private:
  Completion ask(HttpConnection& connection, const CompletionRequest& request) const;

  HttpSettings http_;
  HttpTargetOptions options_;
  const Protocol& protocol_;
  ServerIdentity identity_;
};

}  // namespace cupel
