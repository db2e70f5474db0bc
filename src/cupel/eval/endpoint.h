// Where a server is and which of its interfaces is spoken.
#pragma once

#include <string>
#include <string_view>

namespace cupel {

enum class Api {
  kCompletions,  // OpenAI /v1/completions: the prompt as text
  kChat,         // OpenAI /v1/chat/completions: the prompt as one user message
  kGenerate,     // SGLang /generate: the prompt as text
};

// "completions", "chat" or "generate". Throws InputError.
Api parse_api(std::string_view name);
std::string_view api_name(Api api);

struct EndpointUrl {
  std::string origin;  // "http://host:30000"
  std::string prefix;  // what comes before /v1 or /generate: empty, or "/gateway"

  std::string text(std::string_view path) const { return origin + prefix + std::string(path); }
};

// `url` is http:// or https://, a host, a port or none, and the path that the server's interfaces
// are under; a "/v1" at its end is dropped, as other clients want it there. Throws InputError for
// anything else: a URL with a user name, a query or a fragment, a port out of range, https where
// the HTTP library was built without it.
EndpointUrl parse_endpoint(std::string_view url);

}  // namespace cupel
