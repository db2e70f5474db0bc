// Flags that every command with an engine has.
#pragma once

#include <optional>
#include <string>

#include "cupel/engine/engine.h"

namespace CLI {
class App;
}

namespace cupel {

struct EngineFlags {
  std::optional<std::string> model;  // --model; commands over several models have their own
  std::string backend = "unified";   // likewise --attention-backend
  std::string numerics = "reference";
  std::string kv_dtype = "auto";
  std::string isa = "auto";
  int prefill_chunk = EngineOptions{}.prefill_chunk;
  int threads = 0;
  std::size_t max_cache_bytes = 0;
  bool no_prefix_cache = false;

  // --model and --attention-backend for one engine.
  void add_single(CLI::App& app);
  // The rest.
  void add_common(CLI::App& app);

  // Applies --isa; SIGINT and SIGTERM now end generation in good order. Throws InputError.
  EngineOptions options() const;
  EngineOptions options(const std::filesystem::path& model, BackendKind kind) const;
};

// parse_backend(), with a note on standard error where the backend is named as SGLang names it.
BackendKind parse_backend_flag(const std::string& name);

// The last component of a checkpoint's path, for labels: "tiny-v4-0731" for "models/tiny-v4-0731/".
std::string model_label(const std::filesystem::path& folder);

}  // namespace cupel
