// Bodies of requests: any bytes are read as a request that the engine takes, or refused by an error
// meant for the client.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cupel/base/error.h"
#include "cupel/server/chat_request.h"
#include "cupel/server/completions_request.h"
#include "cupel/server/http_error.h"
#include "cupel/server/native_request.h"

namespace {

struct Served {
  cupel::Engine engine{
      {.model = CUPEL_SOURCE_DIR "/models/tiny-v4-0731", .network = {}, .threads = 1}};
  cupel::ServerOptions options{.names = {"tiny"}, .model = CUPEL_SOURCE_DIR "/models/tiny-v4-0731"};
  cupel::Metrics metrics{"tiny"};
  cupel::FormCache forms{engine.tokenizer()};
  cupel::HangupWatcher watcher;
  cupel::EngineThread thread{engine};
  cupel::PromptEncoder encoder{
      cupel::ChatRelease::k0731,
      cupel::load_prompt_prose(options.model,
                               CUPEL_SOURCE_DIR "/data/v4-flash/encoding/test_output_1.txt")};
  cupel::ServerContext context{.options = options,
                               .engine = engine,
                               .thread = thread,
                               .metrics = metrics,
                               .watcher = watcher,
                               .encoder = encoder,
                               .forms = forms,
                               .defaults = {},
                               .longest = 4096,
                               .token_capacity = 4096};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const Served served;
  const std::string_view body(reinterpret_cast<const char*>(bytes), size);
  const auto attempt = [&](const auto& read) {
    try {
      read(body, served.context);
    } catch (const cupel::HttpError& error) {
      if (error.status() < 400 || error.status() >= 500) std::abort();
      cupel::error_body(error);
    } catch (const cupel::InputError&) {
      // Becomes a 400.
    }
  };
  attempt(cupel::read_completions);
  attempt(cupel::read_generate);
  attempt(cupel::read_chat);
  return 0;
}
