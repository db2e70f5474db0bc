// The server that a benchmark asks: what it is, what it says of itself, and its cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cupel/eval/http_connection.h"
#include "cupel/eval/server_identity.h"

namespace cupel {

struct BenchTarget {
  HttpSettings http;
  Api api = Api::kGenerate;
  ServerIdentity identity;
};

// Throws InputError as ask_identity() does, InfrastructureError if the server does not answer.
BenchTarget find_bench_target(const HttpSettings& http, Api api, const std::string& served_model);

// /server_info, by SGLang's names; what a server does not tell is missing.
struct ServerFacts {
  std::optional<int> vocabulary;               // vocab_size (Cupel)
  std::optional<std::int64_t> token_capacity;  // internal_states[0].memory_usage.token_capacity
  // internal_states[0].effective_max_running_requests_per_dp times dp_size
  std::optional<std::int64_t> max_running;
  std::optional<double> last_gen_throughput;  // internal_states[0], tokens a second
  std::optional<double> acc_length;           // internal_states[0].avg_spec_accept_length
};

// Throws TransientError.
ServerFacts ask_facts(HttpConnection& connection);

// Drops kept prefixes: SGLang's /flush_cache, else vLLM's /reset_prefix_cache. False if neither
// replies that it did. Throws TransientError.
bool flush_prefixes(HttpConnection& connection);

// What every record says of the conditions of its measurement.
struct BenchConditions {
  std::string url;
  std::string api;
  std::string model;   // the name that requests carry
  std::string server;  // ServerIdentity::details
  std::string build;   // of this program
  std::uint64_t seed = 0;
};

BenchConditions bench_conditions(const BenchTarget& target, std::uint64_t seed);

}  // namespace cupel
