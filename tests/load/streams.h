// Streams of fake servers that benchmarks ask.
#pragma once

#include <string>
#include <vector>

#include "support/fake_server.h"
#include <nlohmann/json.hpp>

#include "cupel/load/bench_target.h"

namespace cupel::test {

// An event of /generate: `tokens` of sequence `index` so far.
inline nlohmann::json generate_event(int tokens, bool end, int prompt_tokens = 11, int index = 0,
                                     int cached = 0) {
  nlohmann::json reason;
  if (end) reason = {{"type", "length"}};
  return {{"text", std::string(static_cast<std::size_t>(tokens), 'x')},
          {"index", index},
          {"meta_info",
           {{"finish_reason", reason},
            {"prompt_tokens", prompt_tokens},
            {"completion_tokens", tokens},
            {"cached_tokens", cached}}}};
}

// An event for each token, by the interface that the path names.
inline std::vector<nlohmann::json> token_events(const std::string& path, int tokens,
                                                int prompt_tokens = 11) {
  using nlohmann::json;
  std::vector<json> parts;
  for (int i = 1; i <= tokens; ++i) {
    const json reason = i == tokens ? json("length") : json();
    if (path == "/generate") {
      parts.push_back(generate_event(i, i == tokens, prompt_tokens));
    } else if (path == "/v1/completions") {
      parts.push_back(
          {{"choices", json::array({{{"index", 0}, {"text", "x"}, {"finish_reason", reason}}})}});
    } else {
      parts.push_back({{"choices", json::array({{{"index", 0},
                                                 {"delta", {{"content", "x"}}},
                                                 {"finish_reason", reason}}})}});
    }
  }
  if (path != "/generate") {
    parts.push_back({{"choices", json::array()},
                     {"usage", {{"prompt_tokens", prompt_tokens}, {"completion_tokens", tokens}}}});
  }
  return parts;
}

// The number of tokens that a request of any of the interfaces asks for.
inline int asked_tokens(const nlohmann::json& body) {
  const auto sampling = body.find("sampling_params");
  return sampling != body.end() ? sampling->at("max_new_tokens").get<int>()
                                : body.at("max_tokens").get<int>();
}

// Streams what a request of one prompt asks for.
inline FakeReply stream_answer(const FakeRequest& request) {
  if (request.path == "/flush_cache") return {.body = "ok", .content_type = "text/plain"};
  return {.pieces = events(token_events(request.path, asked_tokens(request.json)))};
}

// A server as it is asked once it is known.
inline BenchTarget bench_target(const FakeServer& server, Api api, double timeout = 20) {
  return {.http = checked_settings(server.url(), "", timeout),
          .api = api,
          .identity = {.model = "fake", .backend = {}, .details = {}}};
}

}  // namespace cupel::test
