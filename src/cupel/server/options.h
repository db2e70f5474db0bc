// What a server is started with.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cupel/text/chat/encoding.h"

namespace cupel {

// What one client may take. Beyond a limit it gets an error with the status in brackets.
struct ServerLimits {
  std::size_t body_bytes = std::size_t{32} << 20;    // [413]
  std::size_t header_bytes = std::size_t{64} << 10;  // request line and headers [431]
  int json_depth = 64;                               // of the body, a JSON schema included [400]
  int messages = 4096;                               // of a conversation [400]
  int sequences = 4096;                              // prompts times n of one request [400]
  int top_logprobs = 128;                            // [400]
  int connections = 4096;                            // at once; beyond: closed with [503]
  std::chrono::milliseconds header_time{10'000};     // for request line and headers [408]
  std::chrono::milliseconds body_time{60'000};       // for the whole body [408]
  std::chrono::milliseconds idle_time{60'000};       // between requests: closed
  std::chrono::milliseconds write_time{30'000};      // without a byte taken: closed
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 30000;  // 0: any that is free
  // Bearer token that requests must carry; empty: none.
  std::string api_key = {};
  // Names that requests may call the model by; the first is the one that is told. Not empty.
  std::vector<std::string> names = {};
  std::filesystem::path model = {};  // the folder, told as SGLang's model_path
  // Put the begin-of-sentence token before prompts that come as text, where they do not begin with
  // it. Prompts of token ids are taken as they are.
  bool add_bos = false;
  // Of the prompts of chats; empty: as the checkpoint's configuration says.
  std::optional<ChatRelease> release = {};
  // test_output_1.txt of the published encoder, from which the tools template comes where the
  // checkpoint has none; may be missing.
  std::filesystem::path prose_example = {};
  int chat_tokens = 8192;      // limit of a chat's answer whose request names none
  bool allow_unknown = false;  // ignore parameters that the server does not know
  bool log_requests = true;    // a line for each request, without its text
  bool log_text = false;       // the bodies of requests too
  // Running requests may take this long after stop().
  std::chrono::milliseconds grace{30'000};
  ServerLimits limits = {};
};

}  // namespace cupel
