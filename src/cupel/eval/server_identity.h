// What a server says about itself.
#pragma once

#include <string>

#include "cupel/eval/http_connection.h"

namespace cupel {

struct ServerIdentity {
  std::string model;    // the name that requests carry
  std::string backend;  // attention backend; empty where the server does not tell
  // Version and settings that change answers, "version=0.5.18 tp_size=8"; empty where the server
  // does not tell. Only settings known to be harmless: SGLang lists its API key among them.
  std::string details;
};

// Asks for the model names (/v1/models; for /generate also SGLang's own interface) and the
// version. `wanted` is the model's name, or empty for the only one that is served. Throws
// InputError if the server does not serve `wanted`, serves several and none is wanted, tells no
// name and none is given, or is no such server (404 of everything is not told apart from a server
// without these interfaces). Throws TransientError.
ServerIdentity ask_identity(HttpConnection& connection, const HttpSettings& settings, Api api,
                            const std::string& wanted);

// The error of a reply that is not a success: TransientError for 429 and 5xx, else InputError, with
// the status, the path and the first bytes of the body.
[[noreturn]] void throw_status(const HttpReply& reply, const std::string& path,
                               const HttpSettings& settings);

}  // namespace cupel
