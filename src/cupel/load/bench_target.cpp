#include "cupel/load/bench_target.h"

#include <nlohmann/json.hpp>

#include "cupel/base/error.h"
#include "cupel/base/fingerprint.h"
#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

template <typename T>
std::optional<T> positive_number(const json& object, const char* key) {
  const json* value = find_member(object, key);
  if (value == nullptr || !value->is_number() || value->get<double>() <= 0) return std::nullopt;
  return value->get<T>();
}

}  // namespace

BenchTarget find_bench_target(const HttpSettings& http, Api api, const std::string& served_model) {
  HttpConnection connection(http);
  try {
    return {
        .http = http, .api = api, .identity = ask_identity(connection, http, api, served_model)};
  } catch (const TransientError& error) {
    throw InfrastructureError("endpoint", error.what());
  }
}

ServerFacts ask_facts(HttpConnection& connection) {
  ServerFacts facts;
  for (const char* path : {"/server_info", "/get_server_info"}) {
    const HttpReply reply = connection.get(path);
    const json info = json::parse(reply.body, nullptr, false);
    if (reply.status != 200 || !info.is_object()) continue;
    facts.vocabulary = positive_number<int>(info, "vocab_size");
    const json* states = find_member(info, "internal_states");
    if (states == nullptr || !states->is_array() || states->empty()) return facts;
    const json& state = states->front();
    facts.last_gen_throughput = positive_number<double>(state, "last_gen_throughput");
    facts.acc_length = positive_number<double>(state, "avg_spec_accept_length");
    if (const json* memory = find_member(state, "memory_usage")) {
      facts.token_capacity = positive_number<std::int64_t>(*memory, "token_capacity");
    }
    if (const auto running =
            positive_number<std::int64_t>(state, "effective_max_running_requests_per_dp")) {
      facts.max_running = *running * positive_number<std::int64_t>(info, "dp_size").value_or(1);
    }
    return facts;
  }
  return facts;
}

bool flush_prefixes(HttpConnection& connection) {
  for (const char* path : {"/flush_cache", "/reset_prefix_cache"}) {
    if (connection.post(path, "").status == 200) return true;
  }
  return false;
}

BenchConditions bench_conditions(const BenchTarget& target, std::uint64_t seed) {
  return {.url = target.http.endpoint.text(""),
          .api = std::string(api_name(target.api)),
          .model = target.identity.model,
          .server = target.identity.details,
          .build = build_fingerprint(),
          .seed = seed};
}

}  // namespace cupel
