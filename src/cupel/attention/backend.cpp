#include "cupel/attention/backend.h"

#include <string>

#include <fmt/format.h>

#include "cupel/attention/packed.h"
#include "cupel/attention/reference.h"
#include "cupel/attention/unified.h"
#include "cupel/base/error.h"

namespace cupel {

BackendKind parse_backend(std::string_view name) {
  if (name == "reference") return BackendKind::kReference;
  if (name == "packed" || name == "triton") return BackendKind::kPacked;
  if (name == "unified" || name == "unified_kv_triton") return BackendKind::kUnified;
  throw InputError("--attention-backend",
                   "reference, packed (alias triton) or unified (alias unified_kv_triton)",
                   std::string(name));
}

std::string_view backend_name(BackendKind kind) {
  switch (kind) {
    case BackendKind::kReference:
      return "reference";
    case BackendKind::kPacked:
      return "packed";
    case BackendKind::kUnified:
      return "unified";
  }
  return "";
}

KvDtype parse_kv_dtype(std::string_view name) {
  if (name == "auto") return KvDtype::kAuto;
  if (name == "bf16") return KvDtype::kBf16;
  if (name == "fp8_e4m3") return KvDtype::kFp8E4m3;
  throw InputError("--kv-cache-dtype", "auto, bf16 or fp8_e4m3", std::string(name));
}

std::string_view kv_dtype_name(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kAuto:
      return "auto";
    case KvDtype::kBf16:
      return "bf16";
    case KvDtype::kFp8E4m3:
      return "fp8_e4m3";
  }
  return "";
}

void check_backend(BackendKind kind, KvDtype dtype, const ModelConfig& config) {
  if (config.heads % 4 != 0) {
    throw InputError("config.json: num_attention_heads", "a multiple of 4",
                     std::to_string(config.heads));
  }
  if (dtype == KvDtype::kBf16 && kind != BackendKind::kUnified) {
    throw InputError("--kv-cache-dtype",
                     fmt::format("auto or fp8_e4m3 with backend {}", backend_name(kind)), "bf16");
  }
}

std::unique_ptr<AttentionBackend> make_backend(BackendKind kind, KvDtype dtype, Numerics numerics,
                                               const ModelConfig& config, Executor& executor) {
  check_backend(kind, dtype, config);
  if (executor.device() != Device{}) {
    throw InputError("device", fmt::format("cpu with backend {}", backend_name(kind)),
                     executor.device().type);
  }
  ThreadPool& pool = executor.host_threads();
  switch (kind) {
    case BackendKind::kReference:
      return std::make_unique<ReferenceBackend>(pool, numerics, config);
    case BackendKind::kPacked:
      return std::make_unique<PackedBackend>(pool, numerics, config);
    case BackendKind::kUnified:
      return std::make_unique<UnifiedBackend>(pool, dtype, numerics, config);
  }
  return nullptr;
}

}  // namespace cupel
