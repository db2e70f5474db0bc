#include "engine/contract.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "engine/engine_support.h"
#include "support/isa_scope.h"

#include "cupel/base/hash.h"

namespace cupel::test {
namespace {

GenerationRequest request(std::size_t begin, std::size_t length, int tokens) {
  GenerationRequest r;
  r.prompt_ids = text_ids(begin, length);
  r.max_new_tokens = tokens;
  return r;
}

std::vector<std::size_t> ascending(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

RequestCallbacks collect(std::vector<std::string>& hashes) {
  RequestCallbacks callbacks;
  callbacks.on_logits = [&hashes](std::span<const float> logits) {
    hashes.push_back(hash_hex(std::as_bytes(logits)));
  };
  callbacks.on_done = [](const Generation& g) {
    EXPECT_NE(g.finish, FinishReason::kError) << g.error;
  };
  return callbacks;
}

}  // namespace

std::vector<GenerationRequest> contract_requests(std::size_t count) {
  const std::size_t lengths[] = {129, 1, 64,  127, 3,   130, 6,   255, 128, 17, 2,
                                 256, 5, 383, 34,  131, 4,   66,  126, 63,  7,  33,
                                 257, 8, 65,  384, 200, 62,  385, 19,  258, 97};
  // Two that outgrow a page of the cache together.
  std::vector<GenerationRequest> requests = {request(3, 254, 10), request(90, 253, 10)};
  for (std::size_t i = 0; requests.size() < count; ++i) {
    // The second time round other texts, and lengths one off.
    const std::size_t round = i / std::size(lengths);
    const std::size_t begin = i % 3 == 0 ? 0 : 7 * i;
    requests.push_back(
        request(begin, lengths[i % std::size(lengths)] + 2 * round, 2 + static_cast<int>(i % 3)));
    requests.back().sampling = {.temperature = i % 4 == 3 ? 0.9F : 0.0F, .seed = i};
  }
  return requests;
}

Bits baseline(EngineOptions options, const std::vector<GenerationRequest>& requests) {
  options.prefill_chunk = 0;
  options.prefix_cache = false;
  options.threads = 1;
  Engine engine(options);
  Bits bits;
  for (const GenerationRequest& r : requests) {
    engine.submit(r, collect(bits.emplace_back()));
    while (engine.step()) {
    }
  }
  return bits;
}

Bits run_together(Engine& engine, const std::vector<GenerationRequest>& requests,
                  const std::vector<std::size_t>& order, std::size_t at_once) {
  Bits bits(requests.size());
  for (std::size_t next = 0; next < order.size();) {
    for (std::size_t i = 0; i < at_once && next < order.size(); ++i) {
      const std::size_t index = order[next++];
      engine.submit(requests[index], collect(bits[index]));
    }
    engine.step();
  }
  while (engine.step()) {
  }
  return bits;
}

std::vector<Condition> conditions(const EngineOptions& options,
                                  const std::vector<GenerationRequest>& requests, bool full) {
  const std::vector<std::size_t> order = ascending(requests.size());
  std::vector<Condition> all;
  const auto add = [&](const std::string& name, EngineOptions changed,
                       const std::vector<std::size_t>& in_order, std::size_t at_once) {
    all.push_back({name, [=, &requests] {
                     Engine engine(changed);
                     return run_together(engine, requests, in_order, at_once);
                   }});
  };
  EngineOptions plain = options;
  plain.prefix_cache = false;
  for (const int batch : full ? std::vector{1, 2, 3, 8, 32} : std::vector{3}) {
    EngineOptions o = plain;
    o.max_running = batch;
    add("batches of " + std::to_string(batch), o, order, order.size());
  }
  std::mt19937 random(11);
  for (int i = 0; i < (full ? 10 : 1); ++i) {
    std::vector<std::size_t> shuffled = order;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    add("order and arrival " + std::to_string(i), plain, shuffled, 1 + random() % 7);
  }
  for (const int chunk : full ? std::vector{1, 17, 256, 8192} : std::vector{1, 17}) {
    EngineOptions o = plain;
    o.prefill_chunk = chunk;
    add("prefill chunk " + std::to_string(chunk), o, order, 3);
  }
  for (const int threads : full ? std::vector{1, 2} : std::vector{1}) {
    EngineOptions o = plain;
    o.threads = threads;
    add("threads " + std::to_string(threads), o, order, 5);
  }
  all.push_back({"prefix-cache hits", [=, &requests] {
                   Engine engine(options);
                   run_together(engine, requests, order, 4);
                   const auto before = engine.stats().cached_tokens;
                   Bits bits = run_together(engine, requests, order, 4);
                   EXPECT_GT(engine.stats().cached_tokens, before);
                   return bits;
                 }});
  all.push_back({"after other requests", [=, &requests] {
                   Engine engine(options);
                   std::vector<GenerationRequest> before;
                   for (int i = 0; i < (full ? 500 : 25); ++i) {
                     const auto n = static_cast<std::size_t>(i);
                     before.push_back(request(1 + n % 40, 3 + n % 23, 1 + i % 3));
                   }
                   run_together(engine, before, ascending(before.size()), 6);
                   return run_together(engine, requests, order, 4);
                 }});
  all.push_back({"preemptions in a tiny cache", [=, &requests] {
                   std::size_t bytes = 0;
                   {
                     // Two states and three pages: the first two prompts fit, until both outgrow
                     // their page.
                     Engine engine(options);
                     const auto of = [&](std::int64_t pages) {
                       return engine.network().sequence_bytes(pages * kPageTokens);
                     };
                     bytes = of(1) + of(2);
                   }
                   EngineOptions o = options;
                   o.max_cache_bytes = bytes;
                   Engine engine(o);
                   Bits bits = run_together(engine, requests, order, order.size());
                   EXPECT_GT(engine.stats().preemptions, 0U);
                   EXPECT_LE(engine.stats().cache_bytes, bytes);
                   EXPECT_TRUE(engine.network().backend().owners_agree());
                   return bits;
                 }});
  for (const Isa isa : available_isas()) {
    const IsaScope named(isa);
    all.push_back({std::string(active_isa()), [=, &requests] {
                     const IsaScope scope(isa);
                     Engine engine(plain);
                     return run_together(engine, requests, order, 6);
                   }});
  }
  return all;
}

std::size_t differences(const Bits& actual, const Bits& expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) count += actual.at(i) == expected[i] ? 0U : 1U;
  return count;
}

}  // namespace cupel::test
