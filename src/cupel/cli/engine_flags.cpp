#include "cupel/cli/engine_flags.h"

#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/cli/interrupt.h"
#include "cupel/kernels/isa.h"

namespace cupel {

void EngineFlags::add_single(CLI::App& app) {
  app.add_option(
      "--model", model,
      "Checkpoint folder (default: the environment variable DEEPSEEK_V4_FP4_MODEL_PATH)");
  app.add_option("--attention-backend", backend,
                 "reference, packed (SGLang: triton) or unified (SGLang: unified_kv_triton)")
      ->capture_default_str();
}

void EngineFlags::add_common(CLI::App& app) {
  app.add_option(
         "--numerics", numerics,
         "reference: the published rounding points; float32: no rounding, no quantisation of "
         "activations")
      ->capture_default_str();
  app.add_option("--kv-cache-dtype", kv_dtype,
                 "auto, bf16 or fp8_e4m3; auto is fp8 for packed and bf16 for unified")
      ->capture_default_str();
  app.add_option("--prefill-chunk", prefill_chunk,
                 "Prompt tokens of a sequence in one step; 0 = whole. Does not change a result")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", threads,
                 "Threads; 0 = one per hardware thread. Does not change a result")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--max-cache-bytes", max_cache_bytes,
                 "Bytes for the caches of all sequences and kept prefixes, for example 2GB; 0 = a "
                 "quarter of memory. Does not change a result")
      ->capture_default_str()
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--no-prefix-cache", no_prefix_cache,
               "Compute every prompt from its first token (default: start from the longest prefix "
               "that is kept). Does not change a result");
  app.add_option(
         "--weights", weights,
         "repack: hold them in memory; map: use them from the files, for models larger than "
         "memory, at a fraction of the speed. Does not change a result")
      ->capture_default_str();
  app.add_option("--isa", isa, "auto, avx2, avx512 or avx512-bf16. Does not change a result")
      ->capture_default_str();
}

EngineOptions EngineFlags::options() const {
  return options(resolve_model_path(model), parse_backend_flag(backend));
}

EngineOptions EngineFlags::options(const std::filesystem::path& folder, BackendKind kind) const {
  set_isa(parse_isa(isa));
  watch_interrupts();
  return {.model = folder,
          .network = {.backend = kind,
                      .kv_dtype = parse_kv_dtype(kv_dtype),
                      .numerics = parse_numerics(numerics),
                      .weights = parse_weights_form(weights)},
          .prefill_chunk = prefill_chunk,
          .threads = threads,
          .max_cache_bytes = max_cache_bytes,
          .prefix_cache = !no_prefix_cache,
          .stop_requested = interrupt_requested};
}

void exclude_engine_flags(CLI::App& app, CLI::Option& endpoint) {
  for (const char* flag :
       {"--model", "--attention-backend", "--numerics", "--kv-cache-dtype", "--prefill-chunk",
        "--threads", "--max-cache-bytes", "--no-prefix-cache", "--weights", "--isa"}) {
    endpoint.excludes(app.get_option(flag));
  }
}

BackendKind parse_backend_flag(const std::string& name) {
  const BackendKind kind = parse_backend(name);
  if (name != backend_name(kind)) {
    fmt::print(stderr, "note: attention backend {} is Cupel's {}\n", name, backend_name(kind));
  }
  return kind;
}

std::string model_label(const std::filesystem::path& folder) {
  // Without the empty component that a slash at the end stands for.
  const auto normal = (std::filesystem::absolute(folder) / "").lexically_normal().parent_path();
  return normal.filename().string();
}

}  // namespace cupel
