// What the handlers of a server share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "cupel/engine/engine_thread.h"
#include "cupel/server/form_cache.h"
#include "cupel/server/hangup_watcher.h"
#include "cupel/server/metrics.h"
#include "cupel/server/options.h"
#include "cupel/text/chat/encoding.h"

namespace cupel {

struct ServerContext {
  const ServerOptions& options;
  const Engine& engine;  // for its tokenizer, configuration and validate(); `thread` owns the rest
  EngineThread& thread;
  Metrics& metrics;
  HangupWatcher& watcher;
  const PromptEncoder& encoder;
  FormCache& forms;
  SamplingParams defaults;          // of requests that name no value
  std::int64_t longest = 0;         // tokens of a sequence, prompt and output, that can be served
  std::int64_t token_capacity = 0;  // tokens of one sequence that the cache holds
};

// temperature, top_p, top_k, min_p and the penalties of the checkpoint's generation_config.json, as
// SGLang and vLLM take them; what the file does not say is temperature 1 and nothing cut. Throws
// InputError for a file that is not as expected.
SamplingParams load_sampling_defaults(const std::filesystem::path& model);

// add_bos_token of tokenizer_config.json; false where it is not there. Throws InputError.
bool load_add_bos(const std::filesystem::path& model);

// The longest sequence that the cache holds, in tokens.
std::int64_t cache_capacity(Engine& engine);

}  // namespace cupel
