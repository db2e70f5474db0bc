#include "cupel/engine/engine.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/hash.h"
#include "cupel/engine/generation.h"
#include "cupel/kernels/isa.h"

namespace cupel {
namespace {

std::vector<bool> tokens_that_exist(const Tokenizer& tokenizer, int vocab,
                                    const std::filesystem::path& model) {
  std::vector<bool> exists(static_cast<std::size_t>(vocab));
  for (int id = 0; id < vocab; ++id) {
    exists[static_cast<std::size_t>(id)] = tokenizer.has_token(id);
  }
  if (tokenizer.id_limit() > vocab) {
    throw InputError((model / "tokenizer.json").string(),
                     fmt::format("token ids below vocab_size {}", vocab),
                     fmt::format("id {}", tokenizer.id_limit() - 1));
  }
  return exists;
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      pool_(options.threads),
      tokenizer_(Tokenizer::load(options.model / "tokenizer.json")),
      sampler_({}) {
  if (options.max_running < 1) {
    throw InputError("max_running", "at least 1", std::to_string(options.max_running));
  }
  if (options.prefill_chunk < 0) {
    throw InputError("prefill_chunk", "0 or more", std::to_string(options.prefill_chunk));
  }
  require_baseline_isa();
  const Checkpoint checkpoint(options.model);
  network_ = std::make_unique<Network>(checkpoint, options.network, pool_);
  sampler_ = Sampler(tokens_that_exist(tokenizer_, config().vocab_size, options.model));
  fingerprint_ = fmt::format("{} tokenizer={}", network_->fingerprint(),
                             hash_hex(read_file(options.model / "tokenizer.json")));
}

void Engine::check(const GenerationRequest& request, std::size_t index) const {
  const std::string where = fmt::format("request {}", index);
  if (request.prompt_ids.empty()) throw InputError(where, "a prompt of at least one token", "none");
  if (request.max_new_tokens < 1) {
    throw InputError(where, "max_new_tokens of at least 1", std::to_string(request.max_new_tokens));
  }
  if (!std::isfinite(request.temperature) || request.temperature < 0) {
    throw InputError(where, "a finite temperature of at least 0",
                     fmt::format("{}", request.temperature));
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) throw InputError(where, "stop strings of at least one byte", "\"\"");
  }
  for (std::size_t i = 0; i < request.prompt_ids.size(); ++i) {
    const std::int32_t id = request.prompt_ids[i];
    if (id < 0 || id >= config().vocab_size) {
      throw InputError(fmt::format("{}, prompt token {}", where, i),
                       fmt::format("an id in [0, {})", config().vocab_size), std::to_string(id));
    }
  }
  const std::int64_t total = static_cast<std::int64_t>(request.prompt_ids.size()) +
                             static_cast<std::int64_t>(request.max_new_tokens);
  if (total > config().max_position_embeddings) {
    throw InputError(where,
                     fmt::format("prompt and new tokens within the context of {}",
                                 config().max_position_embeddings),
                     fmt::format("{} + {}", request.prompt_ids.size(), request.max_new_tokens));
  }
}

void Engine::generate(std::span<const GenerationRequest> requests, int concurrency,
                      const std::function<void(std::size_t, const Generation&)>& done) {
  for (std::size_t i = 0; i < requests.size(); ++i) check(requests[i], i);
  GenerationLoop(*this, requests, concurrency, done).run();
}

std::vector<float> Engine::logits(std::span<const std::int32_t> prompt,
                                  std::span<const std::int32_t> feed) {
  if (prompt.empty()) throw InputError("prompt_ids", "at least one id", "none");
  SequenceState state = network_->open();
  const struct Closer {
    Network& network;
    SequenceState& state;
    ~Closer() { network.close(state); }
  } closer{*network_, state};

  std::vector<float> out;
  const auto chunk = static_cast<std::size_t>(options_.prefill_chunk);
  for (std::size_t at = 0; at < prompt.size();) {
    const std::size_t count = chunk == 0 ? prompt.size() : std::min(chunk, prompt.size() - at);
    const SegmentInput input{.state = &state, .ids = prompt.subspan(at, count)};
    at += count;
    const std::size_t last[] = {count - 1};
    const bool end = at == prompt.size();
    out = network_->forward(
        {&input, 1}, end ? std::span<const std::size_t>(last) : std::span<const std::size_t>());
  }
  for (const std::int32_t id : feed) {
    const SegmentInput input{.state = &state, .ids = {&id, 1}};
    const std::size_t row[] = {0};
    const auto next = network_->forward({&input, 1}, row);
    out.insert(out.end(), next.begin(), next.end());
  }
  return out;
}

}  // namespace cupel
