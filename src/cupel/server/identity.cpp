#include "cupel/server/identity.h"

#include "cupel/attention/backend.h"
#include "cupel/base/fingerprint.h"
#include "cupel/kernels/isa.h"

namespace cupel {

using nlohmann::json;

json model_card(const ServerContext& context, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "cupel"},
          {"root", context.options.model.string()},
          {"max_model_len", context.longest}};
}

json models_json(const ServerContext& context) {
  json data = json::array();
  for (const std::string& name : context.options.names) {
    data.push_back(model_card(context, name));
  }
  return {{"object", "list"}, {"data", std::move(data)}};
}

json model_info_json(const ServerContext& context) {
  return {{"model_path", context.options.model.string()},
          {"tokenizer_path", context.options.model.string()},
          {"is_generation", true},
          {"preferred_sampling_params", nullptr},
          {"weight_version", "default"}};
}

json server_info_json(const ServerContext& context) {
  const EngineOptions& engine = context.engine.options();
  const EngineStats stats = context.thread.stats();
  const json state = {{"last_gen_throughput", context.metrics.generation_throughput()},
                      {"memory_usage",
                       {{"kvcache", static_cast<double>(stats.max_cache_bytes) / 1e9},
                        {"token_capacity", context.token_capacity}}},
                      {"effective_max_running_requests_per_dp", engine.max_running}};
  return {{"version", build_fingerprint()},
          {"model_path", context.options.model.string()},
          {"served_model_name", context.options.names.front()},
          {"attention_backend", backend_name(engine.network.backend)},
          {"kv_cache_dtype", kv_dtype_name(engine.network.kv_dtype)},
          {"numerics", numerics_name(engine.network.numerics)},
          {"fingerprint", context.engine.fingerprint()},
          {"tp_size", 1},
          {"dp_size", 1},
          {"chunked_prefill_size", engine.prefill_chunk},
          {"max_running_requests", engine.max_running},
          {"max_queued_requests", engine.max_waiting},
          {"max_total_num_tokens", context.token_capacity},
          {"context_length", context.longest},
          {"vocab_size", context.engine.config().vocab_size},
          {"disable_radix_cache", !engine.prefix_cache},
          {"enable_deterministic_inference", true},
          {"add_bos_token", context.options.add_bos},
          {"chat_release", release_name(context.encoder.release())},
          {"status", "ready"},
          {"internal_states", json::array({state})}};
}

}  // namespace cupel
