#include "cupel/eval/fetch.h"

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/sha256.h"
#include "cupel/eval/http_connection.h"

namespace cupel {

std::size_t fetch_file(const std::string& url, std::string_view sha256,
                       const std::filesystem::path& path) {
  // The whole path is the "prefix" of an endpoint.
  HttpConnection connection(
      {.endpoint = parse_endpoint(url), .api_key = {}, .timeout_seconds = 60});
  HttpReply reply;
  try {
    reply = connection.get("");
  } catch (const TransientError& error) {
    throw InfrastructureError("fetch", error.what());
  }
  if (reply.status >= 500 || reply.status == 429) {
    throw InfrastructureError("fetch", fmt::format("{}: {}", url, describe_reply(reply, {})));
  }
  if (reply.status != 200) throw InputError(url, "the file", describe_reply(reply, {}));
  const std::string found = sha256_hex(reply.body);
  if (found != sha256) {
    throw InputError(
        url, fmt::format("a file whose SHA-256 is {}", sha256),
        fmt::format("{} ({} bytes, \"{}\")", found, reply.body.size(), first_bytes(reply.body)));
  }
  AtomicFile file(path);
  file.write(reply.body);
  file.commit();
  return reply.body.size();
}

}  // namespace cupel
